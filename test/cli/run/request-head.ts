import t from 'tap'
import { fieldValue, parseHead, rewriteHead } from '../../../src/cli/run/request-head.ts'

const rewritten = (...lines: string[]) => rewriteHead(parseHead(lines.join('\r\n')), 'Bearer key').split('\r\n')

t.test('a CONNECT gets the key of the agent in the place of the own credential', async t => {
  const lines = ['CONNECT example.com:443 HTTP/1.1', 'Host: example.com:443', 'proxy-authorization: Basic cnVuOng=']
  t.strictSame(rewritten(...lines, 'Proxy-Connection: keep-alive', 'Connection: keep-alive', 'User-Agent: x'), [
    'CONNECT example.com:443 HTTP/1.1',
    'Host: example.com:443',
    'Connection: keep-alive',
    'User-Agent: x',
    'Proxy-Authorization: Bearer key',
    '',
    '',
  ])
})

t.test('another request is the last on its connection', async t => {
  t.strictSame(rewritten('GET http://example.com/ HTTP/1.1', 'Host: example.com', 'Connection: keep-alive'), [
    'GET http://example.com/ HTTP/1.1',
    'Host: example.com',
    'Proxy-Authorization: Bearer key',
    'Connection: close',
    '',
    '',
  ])
})

t.test('other options of its connection stay', async t => {
  const lines = ['GET http://example.com/ HTTP/1.1', 'Connection: Upgrade, Keep-Alive', 'connection: X-Own', 'X-Own: 1']
  t.strictSame(rewritten(...lines).slice(1, 4), [
    'X-Own: 1',
    'Proxy-Authorization: Bearer key',
    'Connection: close, Upgrade, X-Own',
  ])
})

t.test('a folded credential leaves no line behind', async t => {
  const lines = ['CONNECT a:1 HTTP/1.1', 'X-Kept: 1', ' more', 'Proxy-Authorization: Basic', '\tcnVuOng=', 'Host: a:1']
  t.strictSame(rewritten(...lines), [
    'CONNECT a:1 HTTP/1.1',
    'X-Kept: 1',
    ' more',
    'Host: a:1',
    'Proxy-Authorization: Bearer key',
    '',
    '',
  ])
})

t.test('a field that is not there, or twice, has no value', async t => {
  const head = parseHead(['GET / HTTP/1.1', 'A: 1', 'B:2 ', 'b: 3', 'C:'].join('\r\n'))
  t.equal(fieldValue(head, 'a'), '1')
  t.equal(fieldValue(head, 'b'), undefined)
  t.equal(fieldValue(head, 'c'), '')
  t.equal(fieldValue(head, 'd'), undefined)
})
