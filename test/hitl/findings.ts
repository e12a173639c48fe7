/** What reviewers see marked in a held body. */

import fc from 'fast-check'
import t from 'tap'
import { findInBody } from '../../src/hitl/findings.ts'
import { doAtOnce } from '../../src/policy/turns/turns.ts'
import { threadTimeOf } from '../fixtures/cpu-time.ts'
import { escapedJson } from '../fixtures/json-escapes.ts'
import { runs } from '../fixtures/runs.ts'

const aws = `AKIA${'QWERTYUIOPASDFGH'}`
const card = '4111 1111 1111 1111'

/** What was found, with the text that is marked. */
function marked(body: string | Uint8Array, rawHeaders: readonly string[] = []) {
  const bytes = Buffer.from(body as string)
  const found = doAtOnce(findInBody(bytes, rawHeaders))
  return found?.places.map(({ detector, from, to }) => [detector, bytes.subarray(from, to).toString()])
}

t.test('every finding is marked where it stands, and no more than it', async t => {
  const jwt = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${'s'.repeat(20)}`
  const secret = 'abcdefghijklmnopqrstuvwxyz0123456789ABCD'
  const key = '-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----'
  for (const [id, text] of [
    ['aws-access-key', aws],
    ['card-number', card],
    ['card-number', '4111111111111111'],
    ['us-ssn', '078-05-1120'],
    ['email', 'a.b@example.org'],
    ['iban', 'DE89 3704 0044 0532 0130 00'],
    ['phone', '+49 30 1234567'],
    ['jwt', jwt],
    ['private-key', key],
  ] as const) {
    t.strictSame(marked(`{"é":"see ${text}", "next": 1}`), [[id, text]], id)
  }
  t.strictSame(marked(`aws_secret_access_key = ${secret}\n`), [['aws-secret-key', secret]])
  t.strictSame(marked('go to https://joe:hunter22@db.example/'), [['url-password', 'hunter22']])
})

t.test('a finding in escapes of JSON is marked as it is written', async t => {
  const content = [`env:\\n${aws}\\n`, '\\u0041KIAQWERTYUIOPASDFGH', 'bob\\u0040a.example', '\\ud83d\\ude00 \\u00e9']
  t.strictSame(marked(`{"é":"${content.join(' ')} ${aws}"}`), [
    ['aws-access-key', aws],
    ['aws-access-key', '\\u0041KIAQWERTYUIOPASDFGH'],
    ['email', 'bob\\u0040a.example'],
    ['aws-access-key', aws],
  ])
  t.strictSame(marked('{"a":"to\\nbob@a.example"}'), [['email', 'bob@a.example']], 'not the letter of the escape')
  const inString = JSON.stringify({ arguments: JSON.stringify({ a: `\u00a0\n${aws}\n` }) })
  t.strictSame(marked(inString), [['aws-access-key', aws]], 'in a string of JSON')
  const long = `${'\\n\\u00e9'.repeat(10_000)}${aws}`
  t.strictSame(marked(`["${long}"]`), [['aws-access-key', aws]], 'far in a body')
})

t.test('a finding in a form is marked as it is written', async t => {
  const form = new URLSearchParams({ 'é %': `é\nto bob@a.example, ${aws}\n{"a":"\\n${aws}"}` }).toString()
  t.strictSame(marked(form), [
    ['email', 'bob%40a.example'],
    ['aws-access-key', aws],
    ['aws-access-key', aws],
  ])
  t.strictSame(marked(`a=%41${aws.slice(1)}%0A&b=%4`), [['aws-access-key', `%41${aws.slice(1)}`]])
})

t.test('any way to write a text in JSON is marked from the beginning of a finding to its end', async t => {
  const around = fc.string({ unit: fc.constantFrom('\n', '\t', ' ', '"', '/', 'é', '😀'), maxLength: 8 })
  fc.assert(
    fc.property(
      fc.tuple(around, around).chain(parts => escapedJson(parts.join(`\n${aws}\n`))),
      text => {
        const found = marked(`{"a":${text}}`)?.map(([id, place]) => [id, JSON.parse(`"${place}"`)])
        return JSON.stringify(found) === JSON.stringify([['aws-access-key', aws]])
      },
    ),
    { numRuns: runs(1_000) },
  )
  t.pass('holds')
})

t.test('a value whose name stands for a secret is marked, in every notation', async t => {
  for (const [text, value] of [
    ['{"user":{"password":"hunter2 x"}}', 'hunter2 x'],
    ['{"pin_code": 1, "apiKey" : 12345 }', '12345'],
    ['user=joe&password=hunter2&x=1', 'hunter2'],
    ['--b\r\nContent-Disposition: form-data; name="password"\r\n\r\nhunter2\r\n--b--', 'hunter2'],
    ['<login><password>hunter2</password></login>', 'hunter2'],
  ] as const) {
    t.strictSame(marked(text), [['secret-name', value]], text)
  }
  t.strictSame(marked(`{"apiKey":"${aws}"}`), [['aws-access-key', aws]], 'a detector says more than a name')
})

t.test('findings are counted in all of a long body, and the first 500 have their place', async t => {
  const cards = `"${card}",\n`.repeat(1_000)
  const body = Buffer.from(`${cards}${'x'.repeat(16_370)}{"password":"${'p'.repeat(100)}"}`)
  const found = doAtOnce(findInBody(body, []))
  t.strictSame(found?.counts, { 'card-number': 1_000, 'secret-name': 1 })
  t.equal(found?.places.length, 500)
})

t.test('a search ends at 10,000 places, so that a body of millions takes no memory', async t => {
  t.strictSame(doAtOnce(findInBody(Buffer.from('token=a&'.repeat(20_000)), []))?.counts, { 'secret-name': 10_000 })
  t.strictSame(doAtOnce(findInBody(Buffer.from(`${aws} `.repeat(20_000)), []))?.counts, { 'aws-access-key': 10_000 })
})

t.test('a long body is searched in short parts, a short one in one', async t => {
  const partsOf = (text: string) => [...findInBody(Buffer.from(text), [])].length
  t.equal(partsOf('a'.repeat(1_000)), 0, 'it yields nowhere')
  t.ok(partsOf('a'.repeat(1_000_000)) > 60)
})

t.test('a body that is not text is searched, and one with a content coding is not', async t => {
  t.strictSame(marked(Buffer.from(`\xff\xfe ${aws} \xff`, 'latin1')), [['aws-access-key', aws]])
  t.equal(doAtOnce(findInBody(Buffer.from(aws), ['Content-Encoding', 'gzip'])), undefined)
  t.strictSame(doAtOnce(findInBody(Buffer.from('nothing'), []))?.counts, {})
})

t.test('hostile bodies of a megabyte are searched in time that is linear', async t => {
  for (const piece of [
    '\\n',
    '\\\\u0041',
    '=',
    'a=',
    '"a":"',
    'form-data; name="a"',
    '<a>',
    '<a ',
    'eyJ',
    '%25',
    '1 ',
    '@',
    'a@b.',
  ]) {
    const body = Buffer.from(piece.repeat(1_000_000 / piece.length))
    const took = threadTimeOf(() => doAtOnce(findInBody(body, [])))
    t.ok(took < 5_000, `${piece}: ${Math.round(took)} ms`)
  }
})
