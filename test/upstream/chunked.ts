/** Threat T21 of SECURITY.md: chunks (RFC 9112 section 7.1) are read in one way or not at all. */
import fc from 'fast-check'
import t from 'tap'
import { ChunkedBody } from '../../src/upstream/chunked.ts'
import { runs } from '../fixtures/runs.ts'

const maxTrailers = 1_000

/** Takes pieces one after the other. `used` counts the bytes that belong to the body. */
function take(...pieces: readonly (string | Buffer)[]) {
  const data: Buffer[] = []
  const body = new ChunkedBody(chunk => void data.push(Buffer.from(chunk)), maxTrailers)
  let used = 0
  for (const piece of pieces) used += body.take(Buffer.from(piece as string, 'latin1'))
  const { complete, trailers } = body
  return { text: Buffer.concat(data).toString('latin1'), used, complete, trailers }
}

const end = '0\r\n\r\n'
const whole = { complete: true, trailers: [] }

const accepted: readonly (readonly [string, string, object])[] = [
  ['an empty body', end, { ...whole, text: '' }],
  ['sizes in both cases', `a\r\n0123456789\r\nB\r\n0123456789a\r\n${end}`, { ...whole, text: '01234567890123456789a' }],
  ['leading zeros', '0000003\r\nabc\r\n000\r\n\r\n', { ...whole, text: 'abc' }],
  ['extensions', `3;a=b;c="d;\\"\xe9"\r\nabc\r\n3;x\r\nabc\r\n0;z=""\r\n\r\n`, { ...whole, text: 'abcabc' }],
  ['line ends in the data', `4\r\n\r\n\n\r\r\n${end}`, { ...whole, text: '\r\n\n\r' }],
  ['data that looks like the end', `5\r\n${end}\r\n${end}`, { ...whole, text: end }],
  ['trailers', '0\r\nX-A: b\r\nx-a:\t\xe9 \r\n\r\n', { complete: true, trailers: ['X-A', 'b', 'x-a', '\xe9'] }],
  ['a body that is not over', '5\r\nabc', { complete: false, text: 'abc' }],
  ['a last chunk without its empty line', '3\r\nabc\r\n0\r\n', { complete: false, text: 'abc' }],
  ['the largest size', 'ffffffffffff\r\nabc', { complete: false, text: 'abc' }],
]

for (const [what, text, expected] of accepted) {
  t.test(`chunks are read: ${what}`, async t => {
    t.match(take(text), { ...expected, used: text.length })
    t.match(take(...text), { ...expected, used: text.length }, 'byte by byte')
  })
}

const refused: Readonly<Record<string, string>> = {
  'no size': '\r\nabc\r\n',
  'a size that is none': 'xyz\r\nabc\r\n',
  'a size with a sign': '+3\r\nabc\r\n',
  'a negative size': '-3\r\nabc\r\n',
  'a size with 0x': '0x3\r\nabc\r\n',
  'a size with an underscore': '1_0\r\nabc\r\n',
  'a size of 13 digits': '0000000000003\r\nabc\r\n',
  'a size beyond all numbers': 'ffffffffffffffffffff\r\n',
  'a space before the size': ' 3\r\nabc\r\n',
  'a space behind the size': '3 \r\nabc\r\n',
  'two sizes': '3 3\r\nabc\r\n',
  'a space before an extension': '3 ;a\r\nabc\r\n',
  'a space within an extension': '3; a=b\r\nabc\r\n',
  'an empty extension': '3;\r\nabc\r\n',
  'an extension without a name': '3;=a\r\nabc\r\n',
  'an extension in quotes without end': '3;a="b\r\nabc\r\n',
  'text behind quotes': '3;a="b"c\r\nabc\r\n',
  'obs-text in an extension without quotes': '3;\xe9\r\nabc\r\n',
  'a bare LF behind the size': '3\nabc\r\n',
  'a bare CR behind the size': '3\rabc\r\n',
  'a bare CR in an extension': '3;a\rb\r\nabc\r\n',
  'a bare LF behind an extension': '3;a\nabc\r\n',
  'a NUL in an extension': '3;a\0\r\nabc\r\n',
  'an extension without a semicolon': '3 a=b\r\nabc\r\n',
  'a long extension': `3;${'a'.repeat(1_100)}\r\nabc\r\n`,
  'a long line without end': 'a'.repeat(1_100),
  'data that is longer than its size': '3\r\nabcd\r\n',
  'data that is shorter than its size': `5\r\nabc\r\n${end}`,
  'a bare LF behind the data': `3\r\nabc\n${end}`,
  'a bare CR behind the data': `3\r\nabc\r${end}`,
  'no line end behind the data': `3\r\nabc${end}`,
  'a last line that ends with LF': '0\r\n\n',
  'a last chunk that ends with LF': '0\n\r\n',
  'a trailer that ends with LF': '0\r\nX: y\n\r\n',
  'a trailer without a colon': '0\r\nHTTP/1.1 200 OK\r\n',
  'a trailer with a space before its colon': '0\r\nX : y\r\n\r\n',
  'a folded trailer': '0\r\nX: y\r\n z\r\n\r\n',
  'a NUL in a trailer': '0\r\nX: \0\r\n\r\n',
  'a length in the trailers': '0\r\ncontent-Length: 3\r\n\r\n',
  'a trailer that is too long': `0\r\nX: ${'a'.repeat(maxTrailers)}\r\n\r\n`,
  'too many trailers': `0\r\n${'X: aaaa\r\n'.repeat(maxTrailers / 9 + 1)}\r\n`,
}

for (const [what, text] of Object.entries(refused)) {
  t.test(`chunks are refused: ${what}`, async t => {
    t.throws(() => take(text), { name: 'UpstreamError', fault: 'malformed' })
    t.throws(() => take(...text), { name: 'UpstreamError', fault: 'malformed' }, 'byte by byte')
  })
}

t.test('what comes behind the end is left', async t => {
  const text = `3\r\nabc\r\n0\r\nX: y\r\n\r\n`
  t.match(take(`${text}HTTP/1.1 200 OK\r\n`), { ...whole, trailers: ['X', 'y'], text: 'abc', used: text.length })
  t.match(take(`${text}\r\n`), { used: text.length })
})

t.test('one that is stopped while it passes data on reads no further, not even what is malformed', async t => {
  let passed = 0
  const body: ChunkedBody = new ChunkedBody(chunk => {
    passed += chunk.length
    body.stop()
  }, maxTrailers)
  body.take(Buffer.from('3\r\nabc this is no chunk'))
  t.equal(passed, 3)
})

t.test('a trailer section of many short lines costs no more than one of few', async t => {
  const body = new ChunkedBody(() => {}, 1_000_000)
  const begin = process.cpuUsage()
  body.take(Buffer.from(`0\r\n${'a:\r\n'.repeat(240_000)}\r\n`))
  const { user, system } = process.cpuUsage(begin)
  t.equal(body.trailers.length, 480_000)
  t.ok(user + system < 2_000_000, `${user + system} us`)
})

/** Cuts `bytes` at `places`, given as shares of its length. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map(share => Math.floor(share * bytes.length)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((to, i) => bytes.subarray(at[i], to))
}

t.test('any body in any chunks, split anywhere, comes out as it was, and not a byte behind it is taken', async t => {
  const chunk = fc.record({
    data: fc.uint8Array({ minLength: 1, maxLength: 40 }),
    zeros: fc.nat(4),
    upper: fc.boolean(),
    extension: fc.constantFrom('', ';a', ';a=b;c', ';a="\\"\xe9"'),
  })
  const places = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 })
  const trailers = fc.array(fc.constantFrom('X: y', 'y:', 'Z: a:b'), { maxLength: 3 })
  const behind = fc.constantFrom('', '\r\n', 'HTTP/1.1 200 OK\r\n\r\n', '0\r\n\r\n', '\0')
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 8 }), trailers, behind, places, (chunks, lines, rest, at) => {
      const encoded = chunks.map(({ data, zeros, upper, extension }) => {
        const size = '0'.repeat(zeros) + data.length.toString(16)
        const line = `${upper ? size.toUpperCase() : size}${extension}\r\n`
        return Buffer.concat([Buffer.from(line, 'latin1'), data, Buffer.from('\r\n')])
      })
      const last = Buffer.from(`0\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`)
      const bytes = Buffer.concat([...encoded, last])
      const { text, used, complete, trailers } = take(...cut(Buffer.concat([bytes, Buffer.from(rest)]), at))
      const expected = Buffer.concat(chunks.map(({ data }) => data)).toString('latin1')
      if (text !== expected || used !== bytes.length || !complete || trailers.length !== lines.length * 2)
        throw new Error('something else came out')
    }),
    { numRuns: runs(1_000) },
  )
  t.pass('holds')
})
