/** What the port of the forward proxy refuses. Threats T02, T20. */
import t from 'tap'
import { absolute, startForward } from '../fixtures/forward.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t)
const gateway = await startForward(t, { config: { System: { RateLimit: { Burst: 1_000 } } } })
const { token } = await gateway.agent()
const authorization = `Bearer ${token}`
const end = `Host: 127.0.0.1:${origin.port}\r\nProxy-Authorization: ${authorization}\r\nConnection: close\r\n\r\n`

const targets: Readonly<Record<string, string>> = {
  'a path': '/',
  'a path of the gateway': '/health',
  'a path behind /proxy/': `/proxy/${origin.url}/`,
  'an asterisk': '*',
  'another scheme': `ftp://127.0.0.1:${origin.port}/`,
  'a web socket URL': `ws://127.0.0.1:${origin.port}/`,
  userinfo: `http://user:password@127.0.0.1:${origin.port}/`,
  'no host': 'http:///path',
  'a fragment': `${origin.url}/#part`,
  'a dot segment': `${origin.url}/a/../b`,
  'port 0': 'http://127.0.0.1:0/',
  'port 65536': 'http://127.0.0.1:65536/',
  'IPv4 in hex': `http://0x7f000001:${origin.port}/`,
}

for (const [name, target] of Object.entries(targets)) {
  t.test(`${name} as the target is 400 and not sent`, async t => {
    const method = target === '*' ? 'OPTIONS' : 'GET'
    const answer = await gateway.exchange(t, `${method} ${target} HTTP/1.1\r\n${end}`)
    t.match(answer, /^HTTP\/1\.1 400 .*"code":"invalid_target"/s)
    t.strictSame(origin.seen, [])
  })
}

t.test('a client that takes the port for that of the gateway is told what to set', async t => {
  t.match(await gateway.exchange(t, `GET / HTTP/1.1\r\n${end}`), /"detail":"[^"]*HTTP_PROXY/)
})

t.test('T02 the gateway itself, its forward proxy and metadata services are refused', async t => {
  for (const url of [
    `http://127.0.0.1:${gateway.port}/health`,
    `http://localhost:${gateway.port}/tokens`,
    `http://127.0.0.1:${gateway.forwardPort}/`,
    `http://[::1]:${gateway.forwardPort}/`,
    'http://169.254.169.254/latest/meta-data/',
    'http://metadata.google.internal/',
  ]) {
    const answer = await gateway.exchange(t, absolute({ url, port: 80 }, { authorization, path: '' }))
    t.match(answer, /^HTTP\/1\.1 403 .*"code":"egress_denied"/s, url)
  }
})

t.test('T02 the port of the forward proxy is refused under /proxy/ too', async t => {
  const answer = await gateway.proxy(token, `http://127.0.0.1:${gateway.forwardPort}/`)
  t.match(await answer.json(), { status: 403, code: 'egress_denied' })
})

t.test('TRACE is refused, and so is a request that passed the gateway before', async t => {
  const trace = await gateway.exchange(t, absolute(origin, { method: 'TRACE', authorization }))
  t.match(trace, /^HTTP\/1\.1 405 .*"code":"method_not_allowed"/s)
  const loop = await gateway.exchange(t, absolute(origin, { authorization, fields: 'Via: 1.1 agent-gateway\r\n' }))
  t.match(loop, /^HTTP\/1\.1 508 .*"code":"loop_detected"/s)
  t.strictSame(origin.seen, [])
})

t.test('too many requests are 429 with Retry-After', async t => {
  const limited = await startForward(t, { config: { System: { RateLimit: { RequestsPerMinute: 1, Burst: 1 } } } })
  const bytes = absolute(origin, { authorization: `Bearer ${(await limited.agent()).token}` })
  t.match(await limited.exchange(t, bytes), /^HTTP\/1\.1 200 /)
  t.match(await limited.exchange(t, bytes), /^HTTP\/1\.1 429 .*\r\nRetry-After: \d+\r\n.*"code":"rate_limited"/s)
})
