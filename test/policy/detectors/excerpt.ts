/** What is left out of a long text before it is searched for secrets holds none, whatever its escapes. */
import fc from 'fast-check'
import t from 'tap'
import { type Text, textOf } from '../../../src/policy/detectors/bytes.ts'
import { secretSearch } from '../../../src/policy/detectors/detectors.ts'
import { Excerpt } from '../../../src/policy/detectors/excerpt.ts'
import { type Escapes, Readings } from '../../../src/policy/detectors/readings.ts'
import { hostileText } from '../../fixtures/hostile-texts.ts'
import { escapedJson } from '../../fixtures/json-escapes.ts'
import { runs } from '../../fixtures/runs.ts'

const unlimited = () => ({ left: Number.POSITIVE_INFINITY })
const block = 2_048

function excerptOf(text: Text, left = Number.POSITIVE_INFINITY): Text {
  const excerpt = new Excerpt(text.bytes)
  while (!excerpt.advance({ left }));
  return { ...text, bytes: excerpt.result }
}

function findIn(text: Text, escapes: Escapes): string | undefined {
  const scan = secretSearch.begin(new Readings(text, escapes))
  scan.advance(unlimited())
  return scan.id
}

/** What holds no secret, and no long run. */
const filling = fc.constantFrom(
  ...[
    'a word and \\"another\\" of it\\n',
    'é 日本 😀 ',
    '\\\\n \\\\\\"x\\\\\\" ',
    'x = f(a, b) -- c ',
    'eyJ.eyJ -----B ',
  ],
  ...['<td>1</td> ', '+1 a+b ', '0123456789 '.repeat(9), ' ', '{"name":"secret_access_key","'],
)

const json = hostileText.chain(text => escapedJson(text).map(once => once.slice(1, -1)))
const nested = json.chain(text => escapedJson(text).map(once => once.slice(1, -1)))
const form = hostileText.map(text => new URLSearchParams([['a', text.toWellFormed()]]).toString())
const piece = fc.oneof(hostileText, json, nested, form)

/** So many bytes of what is repeated; the last of them may be cut. */
const filled = (unit: string, size: number): Buffer => Buffer.alloc(size, unit)

const part = fc.tuple(
  filling,
  fc.oneof(fc.integer({ min: block - 120, max: block + 20 }), fc.integer({ min: 0, max: 12 * block })),
  piece,
)
const text = fc.tuple(fc.array(part, { minLength: 1, maxLength: 3 }), filling, fc.integer({ min: 0, max: 20 * block }))

t.test('the verdict on an excerpt is that on the text, in turns of any length', async t => {
  const ids = new Set<string | undefined>()
  const shares: number[] = []
  fc.assert(
    fc.property(
      text,
      fc.constantFrom<Escapes>('kept', 'read', 'both'),
      fc.boolean(),
      fc.integer({ min: 1, max: 300 }),
      ([parts, unit, size], escapes, utf8, left) => {
        const pieces = parts.flatMap(([unit, size, piece]) => [filled(unit, size), Buffer.from(piece)])
        const whole = { bytes: Buffer.concat([...pieces, filled(unit, size)]), utf8 }
        const excerpt = excerptOf(whole, left)
        shares.push(excerpt.bytes.length / whole.bytes.length)
        const id = findIn(excerpt, escapes)
        ids.add(id)
        return id === findIn(whole, escapes)
      },
    ),
    { numRuns: runs(8_000, 250) },
  )
  t.ok(ids.size > runs(10, 5), [...ids].join(' '))
  t.ok(shares.filter(share => share < 0.5).length > shares.length / 4, 'many are much shorter than their text')
})

t.test('what belongs to a finding is not left out where two blocks meet', async t => {
  const key = 'aB3/'.repeat(10)
  const quote = '\\\\\\\\\\\\\\"'
  const missed: string[] = []
  for (const [piece, id] of [
    [`://${'日'.repeat(64)}:${'本'.repeat(128)}@host`, 'url-password'],
    [`://user:${'\\\\\\\\\\\\\\\\'.repeat(128)}@host`, 'url-password'],
    [`secret_access_key${quote.repeat(64)}value${quote.repeat(8)}${key} `, 'aws-secret-key'],
    ['-----BEGIN ABCDEFGHIJKL ABCDEFGHIJKL PRIVATE KEY BLOCK-----', 'private-key'],
    ['\\u002d----BEGIN PRIVATE KEY-----', 'private-key'],
    ['-----BEGIN%20PRIVATE KEY-----', 'private-key'],
    [`ghp_${'aB3'.repeat(12)}`, 'github-token'],
    [`eyJ${'a'.repeat(16)}.eyJ\\u0061${'a'.repeat(24)} `, 'jwt'],
    [`%67hp_${'aB3'.repeat(12)}`, 'github-token'],
    ['https:\\/\\/joe:hunter22\\u0040db.example', 'url-password'],
    [`${'x '.repeat(9)}SG\\u002e${'aB3'.repeat(20)}`, 'sendgrid-key'],
    [`secretAccessKey: ${'aB3+aB3\\/'.repeat(5)} `, 'aws-secret-key'],
  ] as const) {
    const size = piece.length
    for (let before = 3 * block - size - 40; before <= 3 * block + 40; before += size > 200 ? 17 : 1) {
      const text = textOf(`${' '.repeat(before)}${piece}${' '.repeat(12 * block)}`)
      const excerpt = excerptOf(text)
      if (excerpt.bytes === text.bytes || findIn(excerpt, 'read') !== id) missed.push(`${piece} behind ${before}`)
    }
  }
  t.strictSame(missed, [])
})

t.test('what backslashes stand for depends on all of them, however many', async t => {
  const missed: string[] = []
  for (let count = block; count < block + 32; count++) {
    const prose = filled('a word, ', 60 * block - 9)
    const escaped = `${'\\'.repeat(count)}nghp_${'aB3'.repeat(12)} `
    const whole = textOf(`${prose}${escaped}${' '.repeat(12 * block)}`)
    const excerpt = excerptOf(whole)
    if (excerpt.bytes === whole.bytes || findIn(excerpt, 'read') !== findIn(whole, 'read')) missed.push(`${count}`)
  }
  t.strictSame(missed, [])
})

t.test('whatever a finding needs is seen at any place, and comes with what stands around it', async t => {
  const missed: string[] = []
  const size = 20 * block
  for (const piece of ['+'.repeat(20), 'z'.repeat(20), 'A'.repeat(30), '@', '%', '\\/', '\\u', '-----BEGIN']) {
    for (const border of [2 * block, 7 * block, 14 * block]) {
      for (let at = border - 90; at <= border + 70; at++) {
        const bytes = filled('a word, ', size)
        bytes.write(' ', at - 1)
        bytes.write(`${piece} `, at)
        const excerpt = excerptOf({ bytes, utf8: true }).bytes
        const [from, to] = [Math.floor(at / block) - 1, Math.floor(at / block) + 2].map(index => index * block)
        if (excerpt.indexOf(bytes.subarray(from, to)) < 0 || excerpt.at(-1) !== 10) missed.push(`${piece} at ${at}`)
      }
    }
  }
  t.strictSame(missed, [])
  t.equal(excerptOf(textOf(`${'-'.repeat(19)} `.repeat(3_000))).bytes.length, 60_000, 'nearly a run, again and again')
  const apart = excerptOf(textOf(`@${'x '.repeat(12_000)}${' '.repeat(block)}@${' '.repeat(50_000)}`)).bytes.toString()
  t.equal(apart.match(/\n/g)?.length, 2, 'parts stand apart')
})

t.test('nothing is left of prose and source code, and a text with much to look at stays whole', async t => {
  const prose = textOf('the "word" of a call(a, b): \\"x\\"\\n and é\\\\n'.repeat(1_000))
  t.equal(excerptOf(prose).bytes.length, 0)
  t.equal(excerptOf(textOf('a word '.repeat(100))).bytes.length, 700, 'a short text is not worth it')
  for (const unit of ['aB3/', '<td>1</td>', 'x@y ', '% ', '\\/ ', '-----BEGIN ', `${'a'.repeat(20)} `]) {
    const { bytes } = textOf(unit.repeat(100_000 / unit.length))
    const excerpt = new Excerpt(bytes)
    const budget = { left: 3_000 }
    t.ok(excerpt.advance(budget), unit)
    t.equal(excerpt.result, bytes, unit)
  }
})
