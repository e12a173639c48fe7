/** Threat T21 of SECURITY.md: where two readers could differ about the end of an answer, it is refused. */
import { Readable } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { createOrigin } from '../../src/base/origin.ts'
import type { UpstreamRequest } from '../../src/upstream/handler.ts'
import { authorityOf, type Http1Head, readHead, usesConnectionAuth, writeHead } from '../../src/upstream/http1-head.ts'
import { PartialHead } from '../../src/upstream/partial-head.ts'
import { runs } from '../fixtures/runs.ts'

const ok = 'HTTP/1.1 200 OK\r\n'

interface Accepted {
  readonly what: string
  readonly text: string
  readonly method?: string
  readonly head: Partial<Http1Head>
}

const accepted: readonly Accepted[] = [
  {
    what: 'a length',
    text: `${ok}Content-Length: 12\r\n`,
    head: { status: 200, reason: 'OK', framing: 'length', contentLength: 12, persistent: true, keepAlive: undefined },
  },
  {
    what: 'leading zeros of a length',
    text: `${ok}Content-Length: 007\r\n`,
    head: { framing: 'length', contentLength: 7 },
  },
  {
    what: 'the largest length',
    text: `${ok}Content-Length: 999999999999999\r\n`,
    head: { contentLength: 999_999_999_999_999 },
  },
  { what: 'an empty body', text: `${ok}Content-Length: 0\r\n`, head: { framing: 'none', persistent: true } },
  {
    what: 'chunks, in any case',
    text: `${ok}transfer-encoding: ChunKed\r\n`,
    head: { framing: 'chunked', persistent: true },
  },
  { what: 'a body that ends with the connection', text: ok, head: { framing: 'close', persistent: false } },
  {
    what: 'the length of what HEAD does not bring',
    text: `${ok}Content-Length: 12\r\n`,
    method: 'HEAD',
    head: { framing: 'none', contentLength: 12, persistent: false },
  },
  {
    what: 'an empty body that HEAD does not bring',
    text: `${ok}Content-Length: 0\r\n`,
    method: 'HEAD',
    head: { framing: 'none', persistent: false },
  },
  { what: 'HEAD without framing', text: ok, method: 'HEAD', head: { framing: 'none', persistent: false } },
  {
    what: '204 and a length, which is not passed on',
    text: 'HTTP/1.1 204 No Content\r\nX: Content-Length\r\nContent-Length: 5\r\nY: z\r\n',
    head: { framing: 'none', contentLength: undefined, fields: ['X', 'Content-Length', 'Y', 'z'], persistent: false },
  },
  {
    what: '304 and chunks',
    text: 'HTTP/1.1 304 \r\nTransfer-Encoding: chunked\r\n',
    head: { framing: 'none', persistent: false },
  },
  { what: '304 without a length', text: 'HTTP/1.1 304 \r\n', head: { framing: 'none', persistent: true } },
  {
    what: 'an interim answer',
    text: 'HTTP/1.1 103 Early Hints\r\ncontent-length: 5\r\nLink: </a>\r\n',
    head: { status: 103, framing: 'none', contentLength: undefined, fields: ['Link', '</a>'], persistent: false },
  },
  { what: 'no reason', text: 'HTTP/1.1 200 \r\n', head: { status: 200, reason: '' } },
  { what: 'no reason and no space before it', text: 'HTTP/1.1 200\r\n', head: { status: 200, reason: '' } },
  {
    what: 'a reason with colons, tabs and obs-text',
    text: 'HTTP/1.1 999 a: b\t\xe9\r\n',
    head: { status: 999, reason: 'a: b\t\xe9' },
  },
  {
    what: 'fields in their order and case, without the space around their values',
    text: `${ok}X-A:  \t b c \t\r\nx-a:\r\nB: \xe9\xff:x\r\n`,
    head: { fields: ['X-A', 'b c', 'x-a', '', 'B', '\xe9\xff:x'] },
  },
  {
    what: 'names that objects have',
    text: `${ok}__proto__: x\r\nconstructor: y\r\n`,
    head: { fields: ['__proto__', 'x', 'constructor', 'y'], framing: 'close' },
  },
  {
    what: 'a close',
    text: `${ok}Content-Length: 1\r\nConnection: x, Close\r\n`,
    head: { framing: 'length', persistent: false },
  },
  {
    what: 'a close beside a keep-alive',
    text: `${ok}Content-Length: 1\r\nConnection: keep-alive\r\nConnection: close\r\n`,
    head: { persistent: false },
  },
  {
    what: 'HTTP/1.0',
    text: 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n',
    head: { framing: 'length', persistent: false },
  },
  {
    what: 'HTTP/1.0 that stays',
    text: 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n',
    head: { persistent: true },
  },
  {
    what: 'HTTP/1.0 that would stay without a length',
    text: 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n',
    head: { framing: 'close', persistent: false },
  },
  { what: 'a hint', text: `${ok}Keep-Alive: timeout=5, max=100\r\n`, head: { keepAlive: 5 } },
  { what: 'a hint behind others', text: `${ok}Keep-Alive: max=100, Timeout=7\r\n`, head: { keepAlive: 7 } },
  { what: 'a hint of nothing', text: `${ok}Keep-Alive: timeout=0\r\n`, head: { keepAlive: 0 } },
  {
    what: 'a hint that is none',
    text: `${ok}Keep-Alive: xtimeout=5, timeout=-1, timeout=x\r\n`,
    head: { keepAlive: undefined },
  },
]

for (const { what, text, method = 'GET', head } of accepted) {
  t.test(`a head is read: ${what}`, async t => {
    t.match(readHead(text, method), head)
  })
}

const lengths = ['', '-1', '+1', '1,1', '1, 1', '0x10', '1e3', '1.0', '1 1', ' ', '1;', '"1"', '1000000000000000', '１']
const codings = [
  '',
  'gzip',
  'identity',
  'gzip, chunked',
  'chunked, gzip',
  'chunked, chunked',
  'chunked;q=1',
  'chunked,',
]

const refused: Readonly<Record<string, string>> = {
  'nothing at all': '',
  'an empty line first': `\r\n${ok}`,
  'a space before the version': ` ${ok}`,
  'lower case': 'http/1.1 200 OK\r\n',
  'HTTP/2.0': 'HTTP/2.0 200 OK\r\n',
  'HTTP/1.2': 'HTTP/1.2 200 OK\r\n',
  'HTTP/0.9': 'HTTP/0.9 200 OK\r\n',
  'HTTP/1.10': 'HTTP/1.10 200 OK\r\n',
  'HTTP/1.': 'HTTP/1. 200 OK\r\n',
  ICY: 'ICY 200 OK\r\n',
  'two spaces before the status': 'HTTP/1.1  200 OK\r\n',
  'a tab before the status': 'HTTP/1.1\t200 OK\r\n',
  'no status': 'HTTP/1.1 OK\r\n',
  'no status and no space': 'HTTP/1.1\r\n',
  'status 099': 'HTTP/1.1 099 OK\r\n',
  'status 1000': 'HTTP/1.1 1000 OK\r\n',
  'status 20': 'HTTP/1.1 20 OK\r\n',
  'status abc': 'HTTP/1.1 abc OK\r\n',
  'status 2.0': 'HTTP/1.1 2.0 OK\r\n',
  'status -20': 'HTTP/1.1 -20 OK\r\n',
  'status 200x': 'HTTP/1.1 200x\r\n',
  'a NUL in the reason': 'HTTP/1.1 200 O\0K\r\n',
  'a CR in the reason': 'HTTP/1.1 200 O\rK\r\n',
  'an LF at the end of the status line': 'HTTP/1.1 200 OK\nX: y\r\n',
  'a bare LF between fields': `${ok}X: y\nZ: w\r\n`,
  'a bare CR in a value': `${ok}X: y\rContent-Length: 3\r\n`,
  'CR CR LF': `${ok}X: y\r\r\n`,
  'a bare LF first': `${ok}\nX: y\r\n`,
  'a NUL in a value': `${ok}X: a\0b\r\n`,
  'a DEL in a value': `${ok}X: a\x7fb\r\n`,
  'an escape in a value': `${ok}X: \x1b[0m\r\n`,
  'a folded line': `${ok}X: y\r\n z\r\n`,
  'a line folded with a tab': `${ok}X: y\r\n\tz: w\r\n`,
  'a first line that is folded': `${ok} X: y\r\n`,
  'a space before the colon': `${ok}Content-Length : 3\r\n`,
  'a tab before the colon': `${ok}Transfer-Encoding\t: chunked\r\n`,
  'an empty name': `${ok}: x\r\n`,
  'no colon': `${ok}Content-Length 3\r\n`,
  'no colon, but one in the next line': `${ok}X\r\nY: z\r\n`,
  'obs-text in a name': `${ok}X\xe9: y\r\n`,
  'a name in quotes': `${ok}"X": y\r\n`,
  'a second status line': `${ok}${ok}`,
  'the same length twice': `${ok}Content-Length: 3\r\nContent-Length: 3\r\n`,
  'two different lengths': `${ok}Content-Length: 3\r\ncontent-length: 4\r\n`,
  'a coding twice': `${ok}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n`,
  'a coding and a length': `${ok}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n`,
  'a length and a coding': `${ok}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n`,
  'both, without a body': `HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n`,
  'a coding in HTTP/1.0': 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n',
  ...Object.fromEntries(lengths.map(value => [`Content-Length: '${value}'`, `${ok}Content-Length: ${value}\r\n`])),
  ...Object.fromEntries(
    codings.map(value => [`Transfer-Encoding: '${value}'`, `${ok}Transfer-Encoding: ${value}\r\n`]),
  ),
}

for (const [what, text] of Object.entries(refused)) {
  t.test(`a head is refused: ${what}`, async t => {
    for (const method of ['GET', 'HEAD'])
      t.throws(() => readHead(text, method), { name: 'UpstreamError', fault: 'malformed' })
  })
}

t.test('whatever comes, it is read or refused, and what was read says the same once more', async t => {
  const piece = fc.oneof(
    fc.constantFrom('HTTP/1.1 200', 'HTTP/1.0 ', '\r\n', '\n', '\r', ' ', '\t', ':', ',', 'Content-Length', '5', '\0'),
    fc.constantFrom('Transfer-Encoding: chunked', 'Connection: close', 'Keep-Alive: timeout=', 'x', '\xe9'),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), pieces => {
      const text = `${pieces.join('')}\r\n`
      const read = (head: string) => {
        try {
          return readHead(head, 'GET')
        } catch (error) {
          if ((error as { fault?: string }).fault !== 'malformed') throw error
          return undefined
        }
      }
      const head = read(text)
      if (head === undefined) return
      let again = `HTTP/1.1 ${head.status} ${head.reason}\r\n`
      for (let i = 0; i < head.fields.length; i += 2) again += `${head.fields[i]}: ${head.fields[i + 1]}\r\n`
      const { status, fields, contentLength, framing } = read(again) as Http1Head
      if (
        JSON.stringify([status, fields, contentLength, framing]) !==
        JSON.stringify([head.status, head.fields, head.contentLength, head.framing])
      )
        throw new Error('it says something else')
    }),
    { numRuns: runs(2_000) },
  )
  t.pass('holds')
})

/** How much of a head that comes byte by byte is taken before it is refused; undefined: it is not. */
function refusedAfter(text: string): number | undefined {
  const partial = new PartialHead()
  for (let length = 1; length <= text.length; length++) {
    try {
      partial.grow(text.slice(0, length))
    } catch (error) {
      if ((error as { fault?: string }).fault !== 'malformed') throw error
      return length
    }
  }
  return undefined
}

t.test('a malformed head is refused before it is whole', async t => {
  const { 'nothing at all': _, ...heads } = refused
  for (const [what, text] of Object.entries(heads)) t.not(refusedAfter(text), undefined, what)
})

t.test('a head is refused at the byte that makes it malformed', async t => {
  const cases: readonly (readonly [string, string])[] = [
    ['S', 'SH-2.0-x'],
    ['\x15', '\x03\x01'],
    ['\r\n', 'HTTP/1.1 200'],
    ['HTTP/2', '.0 200'],
    ['HTTP/1.1 0', '99 OK'],
    ['HTTP/1.1 099'.slice(0, 10), '99 OK'],
    ['HTTP/1.1 200x', ''],
    ['HTTP/1.1 200 O\0', 'K'],
    ['HTTP/1.1 200 OK\n', 'X: y'],
    [`${ok}X\xe9`, ': y'],
    [`${ok}X `, ': y'],
    [`${ok}X: y\r\n `, 'z'],
    [`${ok}:`, ' y'],
    [`${ok}X\r\n`, 'Y: z'],
    [`${ok}Content-Length: 3x\r\n`, 'Y: z'],
    [`${ok}Content-Length: 3\r\nContent-Length: 3\r\n`, 'Y: z'],
  ]
  for (const [malformed, rest] of cases) {
    const at = malformed === '\r\n' ? 2 : malformed.length
    t.equal(refusedAfter(malformed + rest), at, JSON.stringify(malformed))
  }
})

t.test('a valid head is valid in every piece', async t => {
  for (const { what, text } of accepted) t.equal(refusedAfter(text), undefined, what)
})

const bound = [
  'WWW-Authenticate: NTLM',
  'WWW-Authenticate: Negotiate oRQwEqADCgEB',
  'WWW-Authenticate: Basic realm="x", ntlm, Bearer',
  'WWW-Authenticate: Basic realm="x",Negotiate',
  'Proxy-Authenticate: Kerberos',
  'Persistent-Auth: true',
  'Proxy-Support: Session-Based-Authentication',
]
const unbound = [
  'WWW-Authenticate: Basic realm="x"',
  'WWW-Authenticate: Digest realm="negotiated", nonce="NTLMx"',
  'Persistent-Auth: false',
  'X-Authenticate: NTLM',
]

for (const [fields, persistent] of [
  [bound, false],
  [unbound, true],
] as const) {
  for (const field of fields) {
    t.test(`a connection ${persistent ? 'is kept' : 'authenticates, and is not kept'}: ${field}`, async t => {
      t.equal(readHead(`HTTP/1.1 401 x\r\n${field}\r\nContent-Length: 0\r\n`, 'GET').persistent, persistent)
    })
  }
}

t.test('credentials of a request that authenticate the connection are known by their scheme', async t => {
  for (const value of ['NTLM TlRM', 'negotiate YII', 'Negotiate', ' Kerberos x', ', NTLM x'])
    for (const name of ['authorization', 'Proxy-Authorization'])
      t.ok(usesConnectionAuth(['X', 'y', name, value]), `${name}: ${value}`)
  for (const value of ['Bearer ntlm', 'Basic Negotiate', 'NTLMx y', ''])
    t.notOk(usesConnectionAuth(['Authorization', value, 'x-thirteen-ab', 'NTLM']), value)
})

const request = (more: Partial<UpstreamRequest> = {}): UpstreamRequest => ({
  method: 'GET',
  path: '/a?b',
  fields: [],
  body: null,
  ...more,
})
const written = (more?: Partial<UpstreamRequest>) => writeHead(request(more), 'up.example')
const begun = (method: string) => `${method} /a?b HTTP/1.1\r\nHost: up.example\r\n`

t.test('the head of a request has Host first, then its fields as they are, then what frames its body', async t => {
  t.equal(written(), `${begun('GET')}\r\n`)
  t.equal(written({ fields: ['X-a', 'b', 'x-A', '\xe9'] }), `${begun('GET')}X-a: b\r\nx-A: \xe9\r\n\r\n`)
  t.equal(written({ method: 'POST' }), `${begun('POST')}Content-Length: 0\r\n\r\n`, 'an absent body is empty')
  t.equal(written({ method: 'DELETE' }), `${begun('DELETE')}\r\n`)
  t.equal(written({ method: 'M-SEARCH' }), `${begun('M-SEARCH')}\r\n`)
  t.equal(written({ method: 'PUT', body: Buffer.from('é') }), `${begun('PUT')}Content-Length: 2\r\n\r\n`)
  t.equal(written({ body: Buffer.alloc(0) }), `${begun('GET')}Content-Length: 0\r\n\r\n`)
  const body = Readable.from([])
  t.equal(written({ method: 'POST', body, bodyLength: 7 }), `${begun('POST')}Content-Length: 7\r\n\r\n`)
  t.equal(written({ method: 'POST', body }), `${begun('POST')}Transfer-Encoding: chunked\r\n\r\n`)
})

t.test('Host names the port unless it is the usual one, and an IPv6 address in brackets', async t => {
  const authority = (...origin: Parameters<typeof createOrigin>) => authorityOf(createOrigin(...origin))
  t.equal(authority('http', 'up.example', 80), 'up.example')
  t.equal(authority('https', 'up.example', 80), 'up.example:80')
  t.equal(authority('https', '[2001:db8::1]', 443), '[2001:db8::1]')
  t.equal(authority('http', '[::1]', 8080), '[::1]:8080')
})

const injected: Readonly<Record<string, Partial<UpstreamRequest>>> = {
  'a line end in the path': { path: '/ HTTP/1.1\r\nX: y' },
  'a space in the path': { path: '/a b' },
  'a NUL in the path': { path: '/\0' },
  'text beyond ASCII in the path': { path: '/é' },
  'no path': { path: '' },
  'a space in the method': { method: 'GET /x' },
  'a method in lower case': { method: 'get' },
  'no method': { method: '' },
  'a line end in a value': { fields: ['X', 'a\r\nY: b'] },
  'a bare CR in a value': { fields: ['X', 'a\rb'] },
  'a bare LF in a value': { fields: ['X', 'a\nb'] },
  'a NUL in a value': { fields: ['X', 'a\0b'] },
  'text beyond latin1 in a value, which would lose its upper byte': { fields: ['X', 'aĊb'] },
  'a line end in a name': { fields: ['X: a\r\nY', 'b'] },
  'a colon in a name': { fields: ['X:', 'b'] },
  'a space in a name': { fields: ['X ', 'b'] },
  'no name': { fields: ['', 'b'] },
  'a second Host': { fields: ['host', 'other'] },
  'a length beside the one of the body': { fields: ['Content-length', '3'] },
  'a coding beside the one of the body': { fields: ['Transfer-Encoding', 'chunked'] },
  'a field about the connection': { fields: ['Connection', 'close'] },
}

for (const [what, more] of Object.entries(injected)) {
  t.test(`a request is not written: ${what}`, async t => {
    t.throws(() => written(more), /cannot happen/)
  })
}
