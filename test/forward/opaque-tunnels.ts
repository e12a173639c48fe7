/** Tunnels that the gateway does not open: CONNECT is decided by host and port. Threats T02, T20, T72, T83. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { absolute, connectBytes, openTunnel, secureSetup, startForward } from '../fixtures/forward.ts'
import { startFullAddress } from '../fixtures/full-address.ts'
import { eventually, merge, type Tree } from '../fixtures/gateway.ts'
import { secureCaFile, startOrigin, startSecureOrigin } from '../fixtures/origin.ts'
import { type RawClient, rawClient, startRawServer } from '../fixtures/raw.ts'
import { scrape } from '../fixtures/scrape.ts'
import { within } from '../fixtures/within.ts'

const origin = await startSecureOrigin(t)
const to = `idp.test:${origin.port}`

/** A gateway that opens no TLS. TLS is all that its tunnels may carry. */
const startTunnels = (t: Test, more: Tree = {}) =>
  startForward(t, {
    ...secureSetup,
    config: merge(merge(secureSetup.config ?? {}, { ForwardProxy: { Https: 'Tunnel' } }), more),
  })
const gateway = await startTunnels(t)
const bearer = async (agent = gateway.agent()) => `Bearer ${(await agent).token}`

t.beforeEach(() => {
  origin.seen.length = 0
})

/** TLS with the upstream itself. */
async function secureIn({ socket }: RawClient, servername: string | undefined): Promise<RawClient> {
  socket.removeAllListeners('data')
  const secure = connectTls({
    socket,
    ca: readFileSync(secureCaFile),
    ...(servername === undefined ? {} : { servername }),
    checkServerIdentity: () => undefined,
  })
  const client = rawClient(secure)
  const end = Promise.race([once(secure, 'secureConnect'), once(secure, 'close')]).catch(() => {})
  await within(end, () => 'TLS is neither open nor closed')
  return client
}

for (const threads of [1, 2]) {
  t.test(`the client talks to the upstream itself, with ${threads} thread(s)`, async t => {
    const own = await startTunnels(t, { System: { Server: { Threads: threads } } })
    const { id, token } = await own.agent()
    const tunnel = await openTunnel(t, own, { to, authorization: `Bearer ${token}` })
    const client = await secureIn(tunnel, 'idp.test')
    client.write(`GET /things HTTP/1.1\r\nHost: ${to}\r\nGateway-Authorization: anything\r\nConnection: close\r\n\r\n`)
    t.match(await client.closed(), /^HTTP\/1\.1 200 .*hello from upstream/s)
    t.match(origin.seen, [{ target: '/things', headers: { 'gateway-authorization': 'anything' } }], 'nothing is read')
    const line = (await own.exchanges(1))[0]
    t.match(line, {
      road: 'tunnel',
      agentId: id,
      method: 'CONNECT',
      origin: origin.url,
      status: 200,
      ending: 'forwarded',
    })
    t.equal(line?.path, undefined)
    t.ok((line?.bytesIn ?? 0) > 100 && (line?.bytesOut ?? 0) > 100)
    const opened = own.log.find(({ message }) => message === 'tunnel opened')
    t.match(opened, { road: 'tunnel', status: 200, decision: 'Allow' })
  })
}

t.test('TunnelHosts are not opened, and other hosts are', async t => {
  const mixed = await startForward(t, {
    ...secureSetup,
    config: merge(secureSetup.config ?? {}, { ForwardProxy: { TunnelHosts: [to] } }),
  })
  const authorization = await bearer(mixed.agent())
  const client = await secureIn(await openTunnel(t, mixed, { to, authorization }), 'idp.test')
  client.write(`GET / HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n`)
  t.match(await client.closed(), /hello from upstream/, 'the inner Host is not seen')
  const plain = await startOrigin(t)
  const opened = await openTunnel(t, mixed, { to: `127.0.0.1:${plain.port}`, authorization })
  opened.write('GET / HTTP/1.1\r\nHost: other.test\r\n\r\n')
  t.match(await opened.closed(), /HTTP\/1\.1 421 /)
})

t.test('T83 a tunnel gets no credential: it waits for none, and a rule that names one refuses it', async t => {
  const own = await startForward(t, {
    ...secureSetup,
    alone: 'its upstreams have credentials',
    config: merge(secureSetup.config ?? {}, {
      ForwardProxy: { Https: 'Tunnel' },
      Credentials: [{ Name: 'shop', Type: 'Connect', Issuer: 'https://idp.test', ClientId: 'me', ClientAuth: 'None' }],
      Upstreams: [{ Host: to, Credential: 'shop' }],
    }),
  })
  const connect = () => own.exchange(t, connectBytes({ to, authorization: `Bearer ${agent.token}` }))
  const rule = {
    name: 'shop',
    effect: 'Allow',
    conditions: [{ field: 'input.host', operator: 'eq', value: 'idp.test' }],
  }
  await own.policy({ name: 'chosen', default: 'Deny', rules: [rule] })
  const agent = await own.agent({ policyName: 'chosen' })
  const tunnel = await openTunnel(t, own, { to, authorization: `Bearer ${agent.token}` })
  const client = await secureIn(tunnel, 'idp.test')
  const chosen = { name: 'chosen', default: 'Deny', rules: [{ ...rule, credential: 'shop' }] }
  t.equal((await own.manage('PUT', '/policies/chosen', chosen)).status, 200)
  await client.closed()
  t.match(await connect(), /^HTTP\/1.1 403 Credential conflict: The rule for this request names a credential\./)
  for (const line of await own.exchanges(2)) t.equal(line.credential, undefined)
})

t.test('the policy decides method, host and port, and sees neither path, fields nor body', async t => {
  const rules = [
    { name: 'host', effect: 'Deny', conditions: [{ field: 'input.host', operator: 'eq', value: 'denied.test' }] },
    { name: 'port', effect: 'Deny', conditions: [{ field: 'input.port', operator: 'eq', value: 8443 }] },
    { name: 'review', effect: 'Hitl', conditions: [{ field: 'input.host', operator: 'eq', value: 'held.test' }] },
    { name: 'path', effect: 'Deny', conditions: [{ field: 'input.path', operator: 'neq', value: '/' }] },
    {
      name: 'field',
      effect: 'Deny',
      conditions: [{ field: 'input.headers.user-agent', operator: 'exists', value: true }],
    },
  ]
  await gateway.policy({ name: 'tunnels', default: 'Allow', rules })
  const authorization = await bearer(gateway.agent({ policyName: 'tunnels' }))
  const fields = 'User-Agent: curl/8\r\n'
  const expected = {
    'denied.test:443': ['403 Denied by policy', 'policy_denied'],
    'other.test:8443': ['403 Denied by policy', 'policy_denied'],
    'held.test:443': ['403 Tunnel needs review', 'tunnel_needs_review'],
  }
  for (const [place, [phrase, code]] of Object.entries(expected)) {
    const answer = await gateway.exchange(t, connectBytes({ to: place, authorization, fields }))
    t.match(answer, new RegExp(`^HTTP/1.1 ${phrase}: [^]*"code":"${code}"`), place)
  }
  await openTunnel(t, gateway, { to, authorization, fields })
  const strict = {
    name: 'bodies',
    effect: 'Deny',
    conditions: [{ field: 'input.body', operator: 'contains', value: 'x' }],
  }
  await gateway.policy({ name: 'reads-bodies', default: 'Allow', rules: [strict] })
  const reading = await bearer(gateway.agent({ policyName: 'reads-bodies' }))
  const answer = await gateway.exchange(t, connectBytes({ to, authorization: reading }))
  t.match(answer, /^HTTP\/1\.1 403 /, 'a body that cannot be read is no reason to allow')
})

t.test('T02 the gateway itself, metadata services and what egress refuses are 403', async t => {
  const authorization = await bearer()
  for (const place of [`127.0.0.1:${gateway.port}`, `127.0.0.1:${gateway.forwardPort}`, '169.254.169.254:443']) {
    const answer = await gateway.exchange(t, connectBytes({ to: place, authorization }))
    t.match(answer, /^HTTP\/1\.1 403 .*"code":"egress_denied"/s, place)
  }
})

t.test('an upstream that refuses the connection is 502', async t => {
  const authorization = await bearer()
  const answer = await gateway.exchange(t, connectBytes({ to: '127.0.0.1:9', authorization }))
  t.match(answer, /^HTTP\/1\.1 502 .*"code":"upstream_failed"/s)
})

const hostile: Readonly<Record<string, Buffer>> = {
  ssh: Buffer.from('SSH-2.0-OpenSSH_9.2\r\n'),
  smtp: Buffer.from('EHLO x\r\n'),
  http: Buffer.from('GET / HTTP/1.1\r\nHost: idp.test\r\n\r\n'),
  'a record that does not end': Buffer.concat([Buffer.from([0x16, 3, 1, 0x40, 0]), Buffer.alloc(16_400, 1)]),
}
for (const [name, bytes] of Object.entries(hostile)) {
  t.test(`T20 ${name} is not sent, and the connection is closed`, async t => {
    const received: Buffer[] = []
    const server = await startRawServer(t, socket => socket.on('data', (chunk: Buffer) => received.push(chunk)))
    const tunnel = await openTunnel(t, gateway, { to: `idp.test:${server.port}`, authorization: await bearer() })
    tunnel.write(bytes)
    await tunnel.closed()
    t.equal(Buffer.concat(received).length, 0)
    const warned = await eventually(
      () =>
        gateway.log.find(
          line => line.message === 'interception failed' && line.origin === `https://idp.test:${server.port}`,
        ),
      line => line !== undefined,
    )
    t.equal(warned?.reason, 'no TLS')
  })
}

t.test('a client that sends no ClientHello is disconnected after 5 seconds', async t => {
  const server = await startRawServer(t, () => {})
  const tunnel = await openTunnel(t, gateway, { to: `idp.test:${server.port}`, authorization: await bearer() })
  tunnel.write('\x16')
  t.match(await tunnel.closed(), /^HTTP\/1\.1 200 .*\r\n\r\n$/s)
})

t.test('a tunnel whose policy changes while its connection is made is decided again', async t => {
  const own = await startTunnels(t)
  const document = { name: 'changes', default: 'Allow' }
  await own.policy(document)
  const authorization = await bearer(own.agent({ policyName: 'changes' }))
  const { place, open } = await startFullAddress(t)
  const answer = own.exchange(t, connectBytes({ to: place, authorization }))
  await eventually(
    () => own.gateway.inFlight(),
    count => count === 1,
  )
  const changed = await own.manage('PUT', '/policies/changes', { ...document, default: 'Deny' })
  t.equal(changed.status, 200, changed.text)
  open()
  t.match(await answer, /^HTTP\/1\.1 403 .*"code":"policy_denied"/s)
})

t.test('T20 another name in TLS, or none, closes the connection before a byte is sent', async t => {
  for (const name of ['other.test', undefined]) {
    const received: Buffer[] = []
    const server = await startRawServer(t, socket => socket.on('data', (chunk: Buffer) => received.push(chunk)))
    const tunnel = await openTunnel(t, gateway, { to: `idp.test:${server.port}`, authorization: await bearer() })
    await secureIn(tunnel, name)
    t.equal(Buffer.concat(received).length, 0, name ?? 'none')
  }
})

t.test('an address needs no name, and a port of TunnelHosts may carry any protocol', async t => {
  const echo = await startRawServer(t, socket => void socket.pipe(socket))
  const place = `127.0.0.1:${echo.port}`
  const other = await startForward(t, { config: { ForwardProxy: { TunnelHosts: [place] } } })
  const tunnel = await openTunnel(t, other, { to: place, authorization: await bearer(other.agent()) })
  tunnel.write('SSH-2.0-x\r\n')
  t.match(await tunnel.until(/SSH-2\.0-x\r\n$/), /SSH/)
  const received: Buffer[] = []
  const server = await startRawServer(t, socket => socket.on('data', (chunk: Buffer) => received.push(chunk)))
  const bare = await openTunnel(t, gateway, { to: `127.0.0.1:${server.port}`, authorization: await bearer() })
  void secureIn(bare, undefined)
  t.ok(
    await eventually(
      () => Buffer.concat(received).length > 0,
      isSent => isSent,
    ),
  )
})

t.test('a tunnel takes a place of MaxInFlight, is counted, and is cut when its agent is revoked', async t => {
  const own = await startTunnels(t, { System: { RateLimit: { MaxInFlight: 1 } } })
  const { id, token } = await own.agent()
  const authorization = `Bearer ${token}`
  const client = await secureIn(await openTunnel(t, own, { to, authorization }), 'idp.test')
  t.match(await own.exchange(t, connectBytes({ to, authorization })), /^HTTP\/1\.1 429 .*"code":"agent_busy"/s)
  const tunnels = async () =>
    scrape((await own.manage('GET', '/metrics')).text).values.get('agent_gateway_tunnels{road="tunnel"}')
  t.equal(await tunnels(), 1)
  await own.manage('POST', `/agents/${id}/revoke`)
  t.equal(await client.closed(), '')
  t.equal(await eventually(tunnels, count => count === 0), 0)
})

t.test('a tunnel counts in Proxy:MaxConnections while it is open', async t => {
  const own = await startTunnels(t, { Proxy: { MaxConnections: 1, MaxConnectionsPerOrigin: 1 } })
  const authorization = await bearer(own.agent())
  const plain = await startOrigin(t)
  const asked = absolute(plain, { authorization })
  t.match(await own.exchange(t, asked), /^HTTP\/1\.1 200 /)
  const tunnel = await openTunnel(t, own, { to, authorization })
  const answer = await own.exchange(t, connectBytes({ to, authorization }))
  t.match(answer, /^HTTP\/1\.1 503 .*"code":"upstream_busy"/s, 'the idle connection has gone, the tunnel has not')
  const waiting = own.exchange(t, asked)
  await eventually(
    () => own.gateway.inFlight(),
    count => count === 2,
  )
  t.equal(plain.seen.length, 1)
  tunnel.socket.destroy()
  t.match(await waiting, /^HTTP\/1\.1 200 /, 'what waits gets the place')
})

t.test('limits of Upgrade* hold for tunnels too', async t => {
  const own = await startTunnels(t, { Proxy: { UpgradeIdleSeconds: 1 } })
  const client = await secureIn(await openTunnel(t, own, { to, authorization: await bearer(own.agent()) }), 'idp.test')
  t.equal(await client.closed(), '')
  t.ok(await eventually(() => own.log.some(({ limit }) => limit === 'upgrade_idle'), Boolean))
})

t.test('the start warns of a credential for a host that is not opened', async t => {
  const key = { ValueFromEnv: 'KEY' }
  const own = await startForward(t, {
    env: { KEY: 'a-value' },
    config: {
      ForwardProxy: { TunnelHosts: ['pinned.test', '*.bank.test'] },
      Upstreams: [
        { Host: 'pinned.test', ...key },
        { Host: 'a.bank.test', ...key },
        { Host: 'open.test', ...key },
      ],
    },
  })
  const warnings = own.gateway.summary.flatMap(([name, text]) => (name === 'Warning' ? [text] : []))
  t.match(warnings, [/^Upstreams: pinned\.test, a\.bank\.test gets no credential .*ForwardProxy:TunnelHosts/])
})
