/** CONNECTs that are refused. Threats T20, T40, T73. */
import t from 'tap'
import { basic, connectBytes, openTunnel, secureSetup, startForward, valuesIn } from '../fixtures/forward.ts'
import { eventually } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const gateway = await startForward(t, { ...secureSetup, config: { System: { RateLimit: { Burst: 1_000 } } } })
const { token } = await gateway.agent()
const authorization = basic('agent', token)
const origin = await startOrigin(t)
const to = `127.0.0.1:${origin.port}`

t.test('no credential, or a wrong one: 407 with both challenges, and the connection closes', async t => {
  const lines = gateway.log.length
  for (const given of [undefined, `Bearer agw_${'x'.repeat(43)}`, basic('agent', 'nothing'), 'Negotiate abc']) {
    const answer = await gateway.exchange(t, connectBytes({ to, authorization: given }))
    t.match(answer, /^HTTP\/1\.1 407 Proxy authentication required: .*"code":"proxy_authentication_required"/s)
    t.match(valuesIn(answer, 'Proxy-Authenticate'), [/^Basic /, /^Bearer /])
    t.strictSame(valuesIn(answer, 'Connection'), ['close'])
  }
  const logged = await eventually(
    () => gateway.log.slice(lines).filter(({ message }) => message === 'exchange'),
    found => found.length === 4,
  )
  t.match(logged[0], { road: 'tunnel', method: 'CONNECT', status: 407, refusal: 'proxy_authentication_required' })
})

const targets = [
  ...['example.com', 'example.com:', 'example.com:0', 'example.com:65536', 'example.com:443x', ':443', '*:443', '*'],
  ...['user@example.com:443', 'example.com:443/path', 'http://example.com:443', '/path', 'exa mple.com:443'],
  ...['[fe80::1%25eth0]:443', '[::ffff:127.0.0.1]:443', '[::1:443', 'example.com.:443', '0x7f000001:443', '127.1:443'],
]

for (const target of targets) {
  t.test(`T20 CONNECT ${target} is 400 and closed`, async t => {
    const answer = await gateway.exchange(t, connectBytes({ to: target, authorization }))
    t.match(answer, /^HTTP\/1\.1 400 .*"code":"invalid_(?:target|request)"/s)
  })
}

t.test('T20 a CONNECT with a body, or with two credentials, is 400 and closed', async t => {
  for (const fields of [
    'Content-Length: 4\r\n',
    'Transfer-Encoding: chunked\r\n',
    `Proxy-Authorization: ${authorization}\r\n`,
    'Proxy_Authorization: x\r\n',
    `Gateway-Authorization: Bearer ${token}\r\n`,
  ]) {
    const answer = await gateway.exchange(t, connectBytes({ to, authorization, fields }))
    t.match(answer, /^HTTP\/1\.1 400 /, fields)
  }
})

t.test('HTTP/1.0 without Host is served', async t => {
  const client = await gateway.open(t)
  client.write(`CONNECT ${to} HTTP/1.0\r\nProxy-Authorization: ${authorization}\r\n\r\n`)
  await client.until(/^HTTP\/1\.1 200 Connection established\r\n\r\n$/)
  client.write('GET / HTTP/1.0\r\n\r\n')
  t.match(await client.closed(), /hello from upstream$/)
})

t.test('an agent that may not act gets the reason', async t => {
  for (const [action, code] of [
    ['quarantine', 'agent_quarantined'],
    ['deactivate', 'agent_inactive'],
    ['revoke', 'agent_revoked'],
  ]) {
    const other = await gateway.agent()
    await gateway.manage('POST', `/agents/${other.id}/${action}`)
    const answer = await gateway.exchange(t, connectBytes({ to, authorization: `Bearer ${other.token}` }))
    t.match(answer, new RegExp(`^HTTP/1.1 403 [^]*"code":"${code}"`))
  }
})

t.test('more tunnels than ForwardProxy:MaxTunnelsPerAgent are 429, until one closes', async t => {
  for (const threads of [1, 2]) {
    const config = { ForwardProxy: { MaxTunnelsPerAgent: 2 }, System: { Server: { Threads: threads } } }
    const small = await startForward(t, { config })
    const [bot, other] = [await small.agent(), await small.agent()]
    const mine = { to, authorization: `Bearer ${bot.token}` }
    const open = [await openTunnel(t, small, mine), await openTunnel(t, small, mine)]
    const answer = await small.exchange(t, connectBytes(mine))
    t.match(answer, /^HTTP\/1\.1 429 Too many tunnels: .*"code":"too_many_tunnels"/s)
    t.match(valuesIn(answer, 'Retry-After'), [/^\d+$/])
    await openTunnel(t, small, { to, authorization: `Bearer ${other.token}` })
    open[0]?.socket.destroy()
    await eventually(
      () => openTunnel(t, small, mine).catch(() => undefined),
      opened => opened !== undefined,
    )
    await eventually(
      () => small.log.some(({ limit, agentId }) => limit === 'tunnels' && agentId === bot.id),
      isLogged => isLogged,
    )
  }
})

t.test('a CONNECT beyond the rate is 429 with Retry-After', async t => {
  const config = { System: { RateLimit: { RequestsPerMinute: 1, Burst: 1 } } }
  const limited = await startForward(t, { config })
  const asked = { to, authorization: `Bearer ${(await limited.agent()).token}` }
  await openTunnel(t, limited, asked)
  const answer = await limited.exchange(t, connectBytes(asked))
  t.match(answer, /^HTTP\/1\.1 429 .*\r\nRetry-After: \d+\r\n.*"code":"rate_limited"/s)
})

t.test('while the gateway stops, a CONNECT is 503', async t => {
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const slow = await startOrigin(t, (_req, res) => void promise.then(() => res.end('late')))
  const stopping = await startForward(t)
  const own = `Proxy-Authorization: Bearer ${(await stopping.agent()).token}\r\n`
  const client = await stopping.open(t)
  // Behind a request that is under way, so that its connection stays open.
  client.write(`GET ${slow.url}/ HTTP/1.1\r\nHost: x\r\n${own}\r\nCONNECT ${to} HTTP/1.1\r\nHost: x\r\n${own}\r\n`)
  await eventually(
    () => slow.seen.length,
    count => count === 1,
  )
  const closed = stopping.close()
  await t.rejects(
    eventually(
      () => stopping.open(t),
      () => false,
    ),
    { code: 'ECONNREFUSED' },
  )
  release()
  t.match(await client.closed(), /late.*HTTP\/1\.1 503 .*"code":"draining"/s)
  await closed
})
