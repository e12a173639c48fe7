import t from 'tap'
import { http1Head, http2Fields } from '../../src/http/http2-heads.ts'

const head = (fields: readonly string[], more: readonly string[] = []): readonly string[] => [
  ...[':method', 'GET', ':scheme', 'https', ':authority', 'a.test', ':path', '/x?y'],
  ...fields,
  ...more,
]

t.test('a request has one Host, one Cookie and the length that its end says', async t => {
  const given = head(['cookie', 'a=1', 'accept', 'x', 'cookie', 'b=2'])
  const fields = ['accept', 'x', 'host', 'a.test', 'cookie', 'a=1; b=2']
  t.strictSame(http1Head(given, true), { method: 'GET', target: '/x?y', fields: [...fields, 'connection', 'close'] })
  const chunked = ['transfer-encoding', 'chunked', 'connection', 'close']
  t.strictSame(http1Head(given, false).fields, [...fields, ...chunked])
  const posts = [':method', 'POST', ':scheme', 'https', ':authority', 'a.test', ':path', '/']
  t.strictSame(http1Head(posts, true).fields, ['host', 'a.test', 'content-length', '0', 'connection', 'close'])
  const long = [...posts, 'content-length', '5']
  t.strictSame(http1Head(long, false).fields, ['content-length', '5', 'host', 'a.test', 'connection', 'close'])
})

t.test('T20 what contradicts itself is left to the checks of HTTP/1.1', async t => {
  const hosts = ({ fields }: { readonly fields: readonly string[] }) =>
    fields.filter((_, i) => i % 2 === 1 && fields[i - 1] === 'host')
  t.strictSame(hosts(http1Head(head(['host', 'b.test']), true)), ['b.test', 'a.test'])
  t.strictSame(hosts(http1Head(head(['host', 'a.test']), true)), ['a.test'])
  const other = [':method', 'GET', ':scheme', 'http', ':authority', 'a.test', ':path', '/x']
  t.equal(http1Head(other, true).target, 'http://a.test/x')
  const unnamed = [':method', 'GET', ':scheme', 'ftp', 'host', 'b.test', ':path', '/x']
  t.equal(http1Head(unnamed, true).target, 'ftp://b.test/x')
  const connect = http1Head([':method', 'CONNECT', ':authority', 'c.test:1'], false)
  t.strictSame([connect.target, connect.fields], ['c.test:1', ['host', 'c.test:1', 'connection', 'close']])
})

t.test('an answer has no field of a connection, and each name once but for cookies', async t => {
  const raw = ['Content-Type', 'a', 'content-type', 'b', 'Set-Cookie', 'x', 'set-cookie', 'y', 'Connection', 'close']
  const fields = http2Fields([...raw, 'Transfer-Encoding', 'chunked', 'Keep-Alive', 'timeout=5', '__proto__', 'z'])
  t.strictSame({ ...fields }, { 'content-type': 'a, b', ['__proto__']: 'z', 'set-cookie': ['x', 'y'] })
})
