/**
 * Threat T21 of SECURITY.md: llhttp, inside of undici, reads every answer a second time. The built-in client never takes an
 * answer that llhttp refuses, never another body, and never uses a connection again that undici would close.
 */
import { Duplex } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { Client } from 'undici'
import { runs } from '../fixtures/runs.ts'
import { openScripted, requestOf, Told } from '../fixtures/upstream.ts'

/** What a reader makes of the bytes of an upstream. */
interface Reading {
  /** Undefined: refused. */
  readonly status: number | undefined
  readonly body: string
  readonly reusable: boolean
}

const refused: Reading = { status: undefined, body: '', reusable: false }
const turn = () => new Promise(setImmediate)
const maxHeaderSize = 4_096

async function readByUs(method: string, pieces: readonly string[]): Promise<Reading> {
  const { connection, say, end } = openScripted({ maxHeaderSize })
  const told = new Told()
  connection.dispatch(requestOf({ method }), told, told)
  for (const piece of pieces) say(piece)
  const closedFirst = told.ends === 0
  if (closedFirst) end()
  await told.over
  const reusable = !closedFirst && !connection.destroyed
  connection.destroy()
  return told.error === undefined ? { status: told.head?.status, body: told.text, reusable } : refused
}

async function readByUndici(method: string, pieces: readonly string[]): Promise<Reading> {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  socket.on('error', () => {})
  const client = new Client('http://up.example', {
    connect: (_options, done) => process.nextTick(done as (error: null, socket: unknown) => void, null, socket),
    maxHeaderSize,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  let status: number | undefined
  let body = ''
  let ended: boolean | undefined
  const begun = Promise.withResolvers<void>()
  client.dispatch(
    { method: method as 'GET', path: '/' },
    {
      onRequestStart: () => begun.resolve(),
      onResponseStart(_controller, received) {
        if (received >= 200) status = received
      },
      onResponseData(_controller, chunk) {
        body += chunk.toString('latin1')
      },
      onResponseEnd() {
        ended = true
      },
      onResponseError() {
        ended = false
      },
    },
  )
  await begun.promise
  for (const piece of pieces) {
    if (socket.destroyed) break
    socket.push(piece, 'latin1')
    await turn()
  }
  const closedFirst = ended === undefined
  if (closedFirst && !socket.destroyed) socket.push(null)
  while (ended === undefined) await turn()
  const reusable = !closedFirst && !socket.destroyed
  await client.destroy()
  return ended ? { status, body, reusable } : refused
}

const statusLine = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('HTTP/1.1 200 OK', 'HTTP/1.1 200 OK', 'HTTP/1.1 404 Not Found') },
  { weight: 3, arbitrary: fc.constantFrom('HTTP/1.1 204 No Content', 'HTTP/1.1 304 Not Modified', 'HTTP/1.0 200 OK') },
  fc.constantFrom(
    'HTTP/1.1 200',
    'HTTP/1.1 200 ',
    'HTTP/1.1 599 x',
    'HTTP/1.1 999 x',
    'HTTP/1.1 600 x',
    'HTTP/1.1 99 x',
  ),
  fc.constantFrom(
    'HTTP/1.1  200 OK',
    'http/1.1 200 OK',
    'HTTP/2.0 200 OK',
    'HTTP/1.2 200 OK',
    'HTTP/1.1 2000 x',
    'HTTP/1.1',
  ),
  fc.constantFrom(' HTTP/1.1 200 OK', 'HTTP/1.1\t200 OK', 'HTTP/1.1 200 a\0b', 'HTTP/1.1 101 x', 'HTTP/1.1 200 \xe9'),
)
const field = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('Content-Length: 5', 'Content-Length: 0', 'Transfer-Encoding: chunked', 'X: y'),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('Connection: close', 'Connection: keep-alive', 'Connection: x, Close', 'X: \xff'),
  },
  fc.constantFrom(
    'Content-Length: 05',
    'Content-Length: +5',
    'Content-Length: 5, 5',
    'Content-Length: 4',
    'Content-Length:5',
  ),
  fc.constantFrom(
    'Content-Length : 5',
    'Content-Length:\t5 ',
    'Content-Length: 5x',
    'Content-Length:',
    'content-length: 5',
  ),
  fc.constantFrom(
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked, gzip',
    'Transfer-Encoding: xchunked',
  ),
  fc.constantFrom(
    'Transfer-Encoding: CHUNKED',
    'Transfer-Encoding:\tchunked\t',
    'Transfer-Encoding: identity',
    'Transfer-Encoding:',
  ),
  fc.constantFrom('Transfer-Encoding : chunked', 'Transfer-Encoding: "chunked"', 'Transfer-Encoding: chunked;q=1'),
  fc.constantFrom(
    ' folded',
    '\tfolded: x',
    'no colon',
    ': empty',
    'X\0: y',
    'X: a\0b',
    'X: a\rb',
    'X(y): z',
    'X: \x7f',
  ),
  fc.constantFrom(
    'Keep-Alive: timeout=1',
    'Keep-Alive: timeout=9',
    'WWW-Authenticate: NTLM',
    'Upgrade: x',
    'Connection: upgrade',
  ),
)
const lineEnd = fc.oneof({ weight: 40, arbitrary: fc.constant('\r\n') }, fc.constantFrom('\n', '\r', '\r\r\n', '\n\r'))
const chunk = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('5\r\nhello\r\n', '3\r\nabc\r\n', '1;a=b\r\nx\r\n', 'A\r\n0123456789\r\n') },
  fc.constantFrom(
    '5 \r\nhello\r\n',
    '5\nhello\n',
    '05\r\nhello\r\n',
    '0x5\r\nhello\r\n',
    '5\r\nhelloX\r\n',
    '5\r\nhello',
    '-1\r\n',
  ),
  fc.constantFrom(
    '5;\r\nhello\r\n',
    '5;a="b\r\nhello\r\n',
    '5;a=b c\r\nhello\r\n',
    'g\r\n',
    '\r\n',
    '5\r\nhello\r\r\n',
    'fffffffffffffffff\r\n',
  ),
)
const last = fc.constantFrom(
  '0\r\n\r\n',
  '0\r\n\r\n',
  '0\r\n\r\n',
  '0\r\nA: b\r\n\r\n',
  '0\r\nContent-Length: 5\r\n\r\n',
  '0\n\n',
  '00\r\n\r\n',
  '0\r\n',
  '',
)
const body = fc.oneof(
  fc.constantFrom(
    'hello',
    'hello',
    '',
    'hell',
    'hello!',
    'hello\r\n',
    'helloHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison',
  ),
  fc
    .tuple(fc.array(chunk, { maxLength: 3 }), last, fc.constantFrom('', '', '', 'X', '\r\n'))
    .map(([chunks, end, more]) => chunks.join('') + end + more),
)
const head = fc
  .tuple(statusLine, fc.array(field, { maxLength: 3 }), fc.array(lineEnd, { minLength: 5, maxLength: 5 }))
  .map(([first, fields, ends]) => [first, ...fields, ''].map((line, i) => line + ends[i]).join(''))
const interim = fc.oneof(
  { weight: 10, arbitrary: fc.constant('') },
  fc.constantFrom(
    'HTTP/1.1 103 x\r\n\r\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 102 x\r\nContent-Length: 5\r\n\r\n',
    '\r\n',
  ),
)
const answer = fc.tuple(interim, head, body).map(parts => parts.join(''))
const method = fc.oneof({ weight: 6, arbitrary: fc.constant('GET') }, fc.constantFrom('HEAD', 'POST'))
const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 })

function cut(text: string, places: readonly number[]): string[] {
  const at = [0, ...places.map(share => Math.floor(share * text.length)).sort((a, b) => a - b), text.length]
  return at
    .slice(1)
    .map((to, i) => text.slice(at[i], to))
    .filter(piece => piece !== '')
}

/** Answers that the built-in client takes and undici does not, each with the reason why that does no harm. */
const taken: Readonly<Record<string, (bytes: string) => boolean>> = {
  'undici refuses a 100 Continue that it did not ask for': bytes => bytes.startsWith('HTTP/1.1 100 '),
  'undici counts the space behind a length as a digit of it': bytes => /content-length:[^\r\n]*[ \t]\r/i.test(bytes),
}

/** Answers that llhttp takes and the built-in client refuses: where another reader could see another end, or another field. */
const stricter: Readonly<Record<string, (bytes: string) => boolean>> = {
  'statuses that HTTP does not have': bytes => /HTTP\/1\.[01] [06-9]/.test(bytes),
  'a status without three digits, or more of them': bytes => /HTTP\/1\.1 (?:\d{1,2}|\d{4,})(?!\d)/.test(bytes),
  'other versions': bytes => /HTTP\/(?:2\.0|1\.2)/.test(bytes),
  'a line end before the status line': bytes => /^[\r\n]/.test(bytes),
  'line ends other than CR LF': bytes => /(?<!\r)\n|\r(?!\n)/.test(bytes),
  'lengths and codings that are empty, repeated, or not plain': bytes =>
    /(?:content-length|transfer-encoding):(?! ?(?:\d+|chunked)\r\n)/i.test(bytes) ||
    (bytes.match(/content-length|transfer-encoding/gi) ?? []).length > 1,
  'chunks in HTTP/1.0': bytes => /HTTP\/1\.0[\s\S]*transfer-encoding/i.test(bytes),
  'an interim answer with a body': bytes => /^HTTP\/1\.1 102/.test(bytes),
  'folded lines': bytes => /\r\n[ \t]/.test(bytes),
  'bytes that no field has': bytes => /[\0\x7f]/.test(bytes),
  'blanks and extensions of chunks that are malformed': bytes =>
    /(?:^|\n)[0-9a-f]+(?: |;\r|;a="b\r|;a=b c)/i.test(bytes),
}

const found = (table: typeof taken, bytes: string) => Object.values(table).some(holds => holds(bytes))

t.test('what the built-in client takes, llhttp takes, with the same body and no more reuse', async t => {
  await fc.assert(
    fc.asyncProperty(method, answer, shares, async (method, bytes, places) => {
      const pieces = cut(bytes, places)
      const [ours, theirs] = [await readByUs(method, pieces), await readByUndici(method, pieces)]
      const both = JSON.stringify({ ours, theirs })
      if (ours.status === undefined) {
        if (theirs.status !== undefined && !found(stricter, bytes))
          throw new Error(`refused for no known reason: ${both}`)
        return
      }
      if (found(taken, bytes)) return
      if (ours.status !== theirs.status || ours.body !== theirs.body) throw new Error(`another answer: ${both}`)
      if (ours.reusable && !theirs.reusable) throw new Error(`used again: ${both}`)
    }),
    { numRuns: runs(20_000) },
  )
  t.pass('holds')
})
