/** The detectors find what their first, slower form found, in pieces too, and look at a bounded number of bytes. */
import fc from 'fast-check'
import t from 'tap'
import { type Text, textOf } from '../../../src/policy/detectors/bytes.ts'
import {
  compileDetectors,
  type DetectorSearch,
  detectors,
  personalDataSearch,
  secretSearch,
} from '../../../src/policy/detectors/detectors.ts'
import { Readings } from '../../../src/policy/detectors/readings.ts'
import { oracleOf, oraclePii, oracleSecret } from '../../fixtures/detectors-oracle.ts'
import { busyPieces, hostileText } from '../../fixtures/hostile-texts.ts'
import { runs } from '../../fixtures/runs.ts'

const unlimited = () => ({ left: Number.POSITIVE_INFINITY })

function findIn(search: DetectorSearch, text: Text): string | undefined {
  const scan = search.begin(new Readings(text))
  scan.advance(unlimited())
  return scan.id
}

t.test('the verdict and the id are those of the first form', async t => {
  const fired = new Set<string | undefined>()
  fc.assert(
    fc.property(hostileText, text => {
      const found = [secretSearch.find(text), personalDataSearch.find(text)]
      for (const id of found) fired.add(id)
      return found[0] === oracleSecret(text) && found[1] === oraclePii(text)
    }),
    // Few random texts have a password in a URL: one run in a hundred had none. %fa is one unit, and no UTF-8.
    { numRuns: 5_000, examples: [['https://joe:hunter22@db.example/'], [`://%fa${'a'.repeat(63)}:aaa@h`]] },
  )
  for (const { id } of detectors) t.ok(fired.has(id), `${id} was found at least once`)
})

t.test('bytes that are no UTF-8 are searched one by one, as Latin-1', async t => {
  fc.assert(
    fc.property(hostileText, text => {
      const bytes = Buffer.from(text, 'latin1')
      const read = bytes.toString('latin1')
      const found = [secretSearch, personalDataSearch].map(search => findIn(search, { bytes, utf8: false }))
      return found[0] === oracleSecret(read) && found[1] === oraclePii(read)
    }),
    { numRuns: 1_000 },
  )
  t.pass('holds')
})

t.test('the verdict far into a long text is that of the first form too', async t => {
  const filling = fc.constantFrom('é ', 'word ', '. ', 'A1', '____ ')
  fc.assert(
    fc.property(hostileText, filling, fc.integer({ min: 100, max: 5_000 }), (piece, filling, times) => {
      const text = `${filling.repeat(times)}${piece}${filling.repeat(times)}`
      return secretSearch.find(text) === oracleSecret(text) && personalDataSearch.find(text) === oraclePii(text)
    }),
    { numRuns: runs(2_000) },
  )
  t.pass('holds')
})

t.test('in a long run of characters, such as a picture in base64, the verdict is that of the first form', async t => {
  const base64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const character = fc.oneof(
    { weight: 60, arbitrary: fc.constantFrom(...base64) },
    { weight: 1, arbitrary: fc.constantFrom(...'-_.= "') },
  )
  const run = fc.array(character, { size: 'max', maxLength: 1_500 }).map(codes => codes.join(''))
  const found = new Set<string | undefined>()
  fc.assert(
    fc.property(
      run,
      hostileText,
      run,
      fc.constantFrom('', '+', '/', '-', '=', '.'),
      (before, piece, behind, border) => {
        const text = before + border + piece + behind
        found.add(secretSearch.find(text))
        return secretSearch.find(text) === oracleSecret(text) && personalDataSearch.find(text) === oraclePii(text)
      },
    ),
    { numRuns: runs(6_000) },
  )
  t.ok(found.size > 10, [...found].join(' '))
})

t.test('any choice of detectors finds what that choice of the first form finds', async t => {
  const ids = [...new Set(detectors.map(({ id }) => id))]
  fc.assert(
    fc.property(fc.subarray(ids, { minLength: 1 }), hostileText, (chosen, text) => {
      const search = compileDetectors(chosen) as DetectorSearch
      return search.find(text) === oracleOf(chosen)(text)
    }),
    { numRuns: 1_000 },
  )
  t.pass('holds')
})

t.test('a search in pieces of any size finds what a search at once finds', async t => {
  fc.assert(
    fc.property(hostileText, fc.integer({ min: 1, max: 40 }), (text, piece) => {
      const all = compileDetectors(['secret', 'pii']) as DetectorSearch
      const ids = [secretSearch, personalDataSearch, all].map(search => {
        const scan = search.begin(new Readings(textOf(text)))
        while (!scan.advance({ left: piece }));
        return scan.id === search.find(text)
      })
      return !ids.includes(false)
    }),
    { numRuns: runs(20_000) },
  )
  t.pass('holds')
})

/** Bytes that count how often they are looked at. */
function counted(bytes: Buffer): { readonly text: Text; readonly looks: () => number } {
  let looks = 0
  const pieces: (() => number)[] = []
  const indexOf = (code: number | Uint8Array, from = 0): number => {
    const found = bytes.indexOf(code, from)
    looks += (found < 0 ? bytes.length : found) - from
    return found
  }
  const copy = (target: Buffer, at: number, from: number, to: number): number => {
    looks += to - from
    return bytes.copy(target, at, from, to)
  }
  const subarray = (from: number, to: number): Buffer => {
    const piece = counted(bytes.subarray(from, to))
    pieces.push(piece.looks)
    return piece.text.bytes
  }
  const decoded = (encoding: BufferEncoding, from: number, to: number): string => {
    looks += to - from
    return bytes.toString(encoding, from, to)
  }
  const handler: ProxyHandler<Buffer> = {
    get(target, key) {
      if (key === 'subarray') return subarray
      if (key === 'indexOf') return indexOf
      if (key === 'copy') return copy
      if (key === 'toString') return decoded
      const value: unknown = Reflect.get(target, key)
      if (typeof value === 'number' && key !== 'length') looks++
      return value
    },
  }
  const all = () => pieces.reduce((sum, one) => sum + one(), looks)
  return { text: { bytes: new Proxy(bytes, handler), utf8: true }, looks: all }
}

/** Looks at each byte, over all passes of a search. */
function looksPerByte(search: DetectorSearch, piece: string, size: number): number {
  const { text, looks } = counted(Buffer.from(piece.repeat(Math.ceil(size / piece.length))))
  findIn(search, text)
  return looks() / text.bytes.length
}

const mostLooks = 26

t.test('whatever the text, each byte is looked at a bounded number of times, however long the text is', async t => {
  let most = { looks: 0, piece: '' }
  for (const piece of busyPieces) {
    const size = Math.max(1_024, 2 * piece.length)
    const [short, long] = [size, 3 * size].map(
      bytes => looksPerByte(secretSearch, piece, bytes) + looksPerByte(personalDataSearch, piece, bytes),
    ) as [number, number]
    if (long > most.looks) most = { looks: long, piece }
    if (long > short * 1.1 + 1) t.fail(`${piece.slice(0, 40)}: ${short.toFixed(1)}, then ${long.toFixed(1)} looks`)
  }
  t.ok(most.looks > 10 && most.looks <= mostLooks, JSON.stringify(most))
})

t.test('random hostile text, repeated, is no worse', async t => {
  fc.assert(
    fc.property(
      hostileText.filter(text => text !== ''),
      text => looksPerByte(secretSearch, text, 2_048) + looksPerByte(personalDataSearch, text, 2_048) <= mostLooks,
    ),
    { numRuns: 100 },
  )
  t.pass('holds')
})
