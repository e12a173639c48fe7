/** What is searched as bytes is what a search of the decoded text finds. */
import fc from 'fast-check'
import t from 'tap'
import { personalDataSearch, secretSearch } from '../../../src/policy/detectors/detectors.ts'
import { BodyView } from '../../../src/policy/request/body.ts'
import { False, missing, True, Unreadable, unreadable } from '../../../src/policy/values/truth.ts'
import { hostileText } from '../../fixtures/hostile-texts.ts'
import { runs } from '../../fixtures/runs.ts'

const charset = fc.constantFrom('', 'utf-8', 'us-ascii', 'latin1', 'iso-8859-1', 'utf-16', 'utf-8,latin1')
const encoding = fc.constantFrom<BufferEncoding>('utf8', 'latin1', 'utf16le')
const bytes = fc.oneof(
  fc
    .tuple(fc.constantFrom('', '', '\ufeff'), hostileText, fc.constantFrom('', '', '\0', 'é', '\ud800'), encoding)
    .map(([before, text, behind, encoding]) => Buffer.from(before + text + behind, encoding)),
  fc.uint8Array({ maxLength: 20 }).map(array => Buffer.from(array)),
)

/** The text as decoders read it; undefined when they could differ, or there is none. */
function decoded(bytes: Buffer, charset: string): string | undefined {
  let text: string
  if (charset === 'latin1' || charset === 'iso-8859-1') text = bytes.toString('latin1')
  else if (charset !== '' && charset !== 'utf-8' && charset !== 'us-ascii') return undefined
  else {
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    } catch {
      return undefined
    }
  }
  return text.startsWith('\ufeff') || text.includes('\0') ? undefined : text
}

t.test('the text and what is found in it do not depend on how it is read', async t => {
  fc.assert(
    fc.property(bytes, charset, (bytes, charset) => {
      const view = new BodyView({ bytes, complete: true }, { mediaType: '', charset, encoding: '' })
      const text = decoded(bytes, charset)
      for (const search of [secretSearch, personalDataSearch]) {
        const found = text !== undefined && search.find(text) !== undefined ? True : False
        const wanted = bytes.length === 0 ? False : text === undefined ? Unreadable : found
        if (view.detects(search) !== wanted) return false
      }
      return view.text === (bytes.length === 0 ? missing : (text ?? unreadable))
    }),
    { numRuns: runs(20_000) },
  )
  t.pass('holds')
})
