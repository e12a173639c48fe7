/** Answers reach clients of the forward proxy as the upstream wrote them, but for what is of a proxy. Threat T71. */
import t from 'tap'
import { absolute, startForward, valuesIn } from '../fixtures/forward.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const leading = {
  Location: 'https://other.example/next',
  'Content-Location': '/here',
  Link: '</next>; rel="next"',
  Refresh: '5; url=/later',
  'Set-Cookie': ['a=1; Path=/; Domain=example.com', 'b=2'],
  'WWW-Authenticate': 'Bearer resource_metadata="https://api.example/.well-known/oauth-protected-resource"',
  'Strict-Transport-Security': 'max-age=31536000',
  'Accept-CH': 'Width',
  'Clear-Site-Data': '"cookies"',
}

const proxy = { 'Proxy-Authenticate': 'Basic realm="upstream"', 'Proxy-Authentication-Info': 'x=1' }

const origin = await startOrigin(t, ({ url }, res) => {
  if (url === '/407') {
    res.writeHead(407, { ...proxy, 'Content-Length': 15, 'Gateway-Upstream-Status': '200' })
    res.end('of the upstream')
  } else {
    res.writeHead(401, { ...leading, 'Alt-Svc': 'h3=":443"', ...proxy })
    res.end()
  }
})
const gateway = await startForward(t)
const { token } = await gateway.agent()
const authorization = `Bearer ${token}`

t.test('links, cookies and challenges are those of the upstream; what is of a proxy is dropped', async t => {
  const answer = await gateway.exchange(t, absolute(origin, { authorization }))
  t.match(answer, /^HTTP\/1\.1 401 /)
  for (const [name, value] of Object.entries(leading)) t.strictSame(valuesIn(answer, name), [value].flat(), name)
  t.strictSame(valuesIn(answer, 'Alt-Svc'), [])
  t.strictSame(valuesIn(answer, 'Proxy-Authenticate'), [])
  t.notMatch(answer, /^(?:Gateway-Upstream-|Content-Security-Policy)/m)
})

t.test('407 of an upstream is 502 with its status, so that no client sends its token again', async t => {
  const answer = await gateway.exchange(t, absolute(origin, { path: '/407', authorization }))
  t.match(answer, /^HTTP\/1\.1 502 Bad Gateway\r\n.*of the upstream$/s)
  t.strictSame(valuesIn(answer, 'Gateway-Upstream-Status'), ['407'])
  t.strictSame(valuesIn(answer, 'Proxy-Authenticate'), [])
  t.strictSame(valuesIn(answer, 'Gateway-Error'), [])
})

t.test('under /proxy/ both are passed on', async t => {
  const client = await openRaw(t, gateway.port)
  const fields = `Host: gateway.test\r\nGateway-Authorization: ${authorization}\r\nConnection: close\r\n`
  client.write(`GET /proxy/${origin.url}/407 HTTP/1.1\r\n${fields}\r\n`)
  const answer = await client.closed()
  t.match(answer, /^HTTP\/1\.1 407 /)
  t.strictSame(valuesIn(answer, 'Proxy-Authenticate'), ['Basic realm="upstream"'])
  t.strictSame(valuesIn(answer, 'Gateway-Upstream-Status'), [])
})
