/** Escapes of JSON hide nothing from detectors, on any road that asks them. */
import fc from 'fast-check'
import t from 'tap'
import { textOf } from '../../../src/policy/detectors/bytes.ts'
import {
  compileDetectors,
  type DetectorSearch,
  personalDataSearch,
  secretSearch,
} from '../../../src/policy/detectors/detectors.ts'
import { Readings } from '../../../src/policy/detectors/readings.ts'
import { longestPiece } from '../../../src/policy/detectors/short-escapes.ts'
import { BodyView } from '../../../src/policy/request/body.ts'
import { False, True } from '../../../src/policy/values/truth.ts'
import { unescaped } from '../../fixtures/detectors-oracle.ts'
import { hostileText } from '../../fixtures/hostile-texts.ts'
import { escapedJson } from '../../fixtures/json-escapes.ts'
import { runs } from '../../fixtures/runs.ts'

const key = 'AKIAIOSFODNN7EXAMPLE'
const unlimited = { left: Number.POSITIVE_INFINITY }

function viewOf(body: string, mediaType = 'application/json', encoding = ''): BodyView {
  return new BodyView({ bytes: Buffer.from(body), complete: true }, { mediaType, charset: '', encoding })
}

/** What the text has as it is: of `%41KIA...` a JSON of it says no more. */
function findAsWritten(search: DetectorSearch, text: string): string | undefined {
  const scan = search.begin(new Readings(textOf(text), 'kept'))
  scan.advance(unlimited)
  return scan.id
}

const isFound = (view: BodyView) => view.detects(secretSearch) === True

t.test('a secret is found in JSON whatever escapes stand around and in it', async t => {
  for (const content of [
    `env:\\n${key}`,
    `a\\t${key}`,
    `a\\r\\b\\f${key}\\n`,
    '\\u0041KIAIOSFODNN7EXAMPLE',
    '\\u0041\\u004b\\u0049AIOSFODNN7EXAMPL\\u0045',
    `\\u00e9${key}`,
    'https:\\/\\/joe:hunter22@db.example\\/',
    `aws_secret_access_key\\n=\\"${'wJalrXUtnFEMI\\/K7MDENG\\/bPxRfiCYEXAMPLEKEY'}\\"`,
  ]) {
    const body = `{"content":"${content}"}`
    t.ok(isFound(viewOf(body)), body)
    t.ok(viewOf(body).secret, `${body}, for the risk score`)
    t.ok(isFound(viewOf(`{"a":1}\n${body}\n`, 'application/x-ndjson')), `${body} in lines`)
    t.ok(isFound(viewOf(`data: ${body}\n\n`, 'text/event-stream')), `${body} in events`)
    t.ok(isFound(viewOf(`--b\r\n\r\n${body}\r\n--b--`, 'multipart/form-data')), `${body} in a part`)
  }
})

t.test('JSON in strings of JSON is read too, as in the arguments of a tool call', async t => {
  let body = JSON.stringify({ content: `env:\n${key}` })
  for (let depth = 1; depth <= 3; depth++) {
    t.ok(isFound(viewOf(body)), body)
    t.equal(secretSearch.find(body), 'aws-access-key', `${body} as a text`)
    body = JSON.stringify({ arguments: body })
  }
  t.notOk(isFound(viewOf(body)), 'to a depth of three')
})

t.test('what spans two members is found, and what is no escape stays as it is', async t => {
  t.ok(isFound(viewOf(`{"a":"x\\n","secretAccessKey":"${'aB3/'.repeat(10)}"}`)))
  t.ok(isFound(viewOf(`{"secretAccessKey\\u0022":"${'aB3/'.repeat(10)}"}`)))
  for (const text of [`\\${key}`, `\\u00z1 ${key}`, `\\u12 ${key}`, `\\x${key.slice(1)} ${key} \\`, `${key}\\u004`]) {
    t.ok(isFound(viewOf(text, 'text/plain')), text)
    t.ok(isFound(viewOf(text)), `${text}, as JSON`)
  }
  t.notOk(isFound(viewOf('{"path":"C:\\\\u\\\\AKIA\\n"}')))
})

t.test(
  'text is searched as it is written too, and JSON is not: there the first letter is that of an escape',
  async t => {
    const npm = `\\npm_${'aB3'.repeat(12)}`
    t.ok(isFound(viewOf(npm, 'text/plain')))
    t.notOk(isFound(viewOf(`{"a":"${npm}"}`)))
    t.ok(isFound(viewOf(JSON.stringify({ a: npm }))))
  },
)

t.test('forms and URLs hide nothing behind percent signs', async t => {
  for (const text of [`env%3A%0A${key}`, '%41KIAIOSFODNN7EXAMPLE', `a=1&b=%7B%22c%22%3A%22%5Cn${key}%22%7D`]) {
    t.ok(isFound(viewOf(`a=${text}`, 'application/x-www-form-urlencoded')), text)
    t.equal(secretSearch.find(`https://a.example/?q=my%20${text}`), 'aws-access-key', text)
  }
  const pem = new URLSearchParams({ key: '-----BEGIN RSA PRIVATE KEY-----\nMIIE' }).toString()
  t.ok(isFound(viewOf(pem, 'application/x-www-form-urlencoded')), pem)
  t.equal(personalDataSearch.find(new URLSearchParams({ to: 'é bob@a.example' }).toString()), 'email')
  for (const text of [`100% of %4 %zz ${key}`, `${key}%4`, `%${key}`])
    t.equal(secretSearch.find(text), 'aws-access-key', text)
  t.equal(secretSearch.find(`%250A${key}`), undefined, 'percent signs are read once')
})

t.test('percent signs in JSON are read behind its escapes, and a plus sign is itself', async t => {
  for (const url of [`https://a.example/?q=%0A${key}`, `\\u0025\\u0030A${key}`, `\\n%41${key.slice(1)}`]) {
    t.ok(isFound(viewOf(`{"url":"${url}"}`)), url)
    t.ok(isFound(viewOf(JSON.stringify({ arguments: `{"url":"${url}"}` }))), `${url} in a string of JSON`)
  }
  const found = (body: string) => viewOf(body).detects(personalDataSearch) === True
  t.ok(found('{"q":"%0A+4930901820"}'))
  t.ok(found('{"q":"%41%2B4930901820 %20+4930901820"}'))
  const unit = fc.constantFrom('%41', '%0a', '%', '%4', '%zz', '%e2', '+', 'x', 'x'.repeat(70), '\\', '\\n', '%5cn')
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 40 }), fc.integer({ min: 1, max: 50 }), (units, left) => {
      const text = units.join('')
      const readings = new Readings({ bytes: Buffer.from(text), utf8: false }, 'read')
      while (!readings.make(4, { left }));
      const read = unescaped(unescaped(unescaped(text))).replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      )
      const last = [3, 2, 1, 0].map(place => readings.at(place)).find(reading => reading !== undefined)
      return last?.bytes.toString('latin1') === read
    }),
    { numRuns: runs(3_000) },
  )
})

t.test('what is no text is searched as it is written', async t => {
  const body = `\\n${key}`
  t.equal(viewOf(body, 'text/plain', 'gzip').secret, undefined)
  t.equal(viewOf(`\0${body}`, 'image/png').secret, undefined)
  t.equal(viewOf(`\0 ${key}`, 'image/png').secret, 'aws-access-key')
})

t.test('any JSON of a text is found to have what the text has', async t => {
  const found = new Map([
    [True, 0],
    [False, 0],
  ])
  fc.assert(
    fc.property(
      hostileText.chain(text => fc.tuple(fc.constant(text), escapedJson(text), escapedJson(text))),
      ([text, once, other]) => {
        const view = viewOf(`{"content":${once},"more":${other}}`)
        return [secretSearch, personalDataSearch].every(search => {
          const plain = findAsWritten(search, text) === undefined ? False : True
          found.set(plain, (found.get(plain) ?? 0) + 1)
          return plain === False || view.detects(search) === True
        })
      },
    ),
    { numRuns: runs(3_000) },
  )
  t.ok(
    [...found.values()].every(count => count > 50),
    [...found].join(' '),
  )
})

t.test('readings are those of a plain replacement, in turns of any length, in UTF-8 and Latin-1', async t => {
  const unit = fc.constantFrom(
    '\\',
    '\\u',
    ...['\\n', '\\r', '\\t', '\\b', '\\f', '\\"', '\\\\', '\\/', '\\x'],
    '\\ud83d\\ude00',
    '\\u00e9',
    '\\u20AC',
    '\\u0041',
    '004',
    'é',
    'x',
  )
  const text = fc.array(unit, { maxLength: 40 }).map(units => units.join('x'.repeat(units.length > 20 ? 70 : 0)))
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 50 }), (text, left) => {
      const readings = new Readings(textOf(text))
      const latin = new Readings({ bytes: Buffer.from(text, 'latin1'), utf8: false }, 'read')
      while (!readings.make(1, { left }));
      latin.make(0, unlimited)
      const wanted = unescaped(text)
      const read = readings.at(1)?.bytes.toString()
      const plain = (value: string) => value.replace(/[\ud800-\udfff\ufffd]/g, '?').replace(/[^\0-\xff]/g, 'ÿ')
      const latinRead = latin.at(0)?.bytes.toString('latin1') ?? ''
      return (
        plain(read ?? text) === plain(wanted) &&
        (read === undefined) === (wanted === text) &&
        latinRead.replace(/[?ÿ]/g, '-') === wanted.replace(/[^\0-\xfe]/g, '-').replace(/[?ÿ]/g, '-')
      )
    }),
    { numRuns: runs(3_000) },
  )
  t.pass('holds')
})

t.test('nothing is hidden where two pieces of the reading meet', async t => {
  const missed: string[] = []
  for (const first of [
    '\\u0041',
    '\\\\\\n\\u0041',
    '\\/A',
    '\\tA',
    '\\"A',
    '\\x A',
    '\\u00z1 A',
    '\\u20ac\\ud83d\\ude00A',
  ]) {
    for (let before = longestPiece - 20; before <= longestPiece; before++) {
      const text = `${'\\n'.repeat(4)}${'.'.repeat(before - 8)}${first}${key.slice(1)}\\nx`
      const readings = new Readings(textOf(text), 'read')
      while (!readings.make(0, { left: 1_000 }));
      const asRead = Buffer.from(unescaped(text)).toString()
      const read = readings.at(0)?.bytes.toString().replaceAll('\ufffd\ufffd', '\u{1f600}')
      if (read !== asRead || !isFound(viewOf(text))) missed.push(`${first} behind ${before}`)
    }
  }
  t.strictSame(missed, [])
})

t.test('readings that were released are made again when a search asks, and keep no bytes of others', async t => {
  const [one, other] = [`${key}${'\\n'.repeat(9_000)}`, `${'\\t'.repeat(9_100)}x`].map(text => viewOf(text)) as [
    BodyView,
    BodyView,
  ]
  const isKnown = (view: BodyView) => view.detects(compileDetectors(['aws-access-key']) as DetectorSearch) === True
  t.notOk(isFound(other))
  other.release()
  other.release()
  t.ok(isFound(one), 'in the memory of the other one')
  t.notOk(isKnown(other), 'which has none of it')
  t.ok(isKnown(one), 'nor has this one')
  one.release()
  t.ok(isKnown(one))
})

t.test('any form of a text is found to have what the text has', async t => {
  fc.assert(
    fc.property(hostileText, text => {
      const view = viewOf(
        new URLSearchParams([['é', text.toWellFormed()]]).toString(),
        'application/x-www-form-urlencoded',
      )
      return [secretSearch, personalDataSearch].every(
        search => findAsWritten(search, text) === undefined || view.detects(search) === True,
      )
    }),
    { numRuns: runs(3_000) },
  )
  t.pass('holds')
})
