/** WebSockets: which handshakes pass, what an open one may do, and what ends it. T66, T83. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import t, { type Test } from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { eventually, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { openRaw, type RawClient } from '../fixtures/raw.ts'

const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
const accepted = ['Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${accept}`]
const switching = (lines: readonly string[]) => `HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`

/** An upstream that answers handshakes with `answer`, and says back what it then gets. */
async function startUpstream(t: Test, answer = switching(accepted)) {
  const seen: IncomingMessage[] = []
  const open = new Set<Duplex>()
  const server = createServer((_req, res) => res.end())
  server.on('upgrade', (req, socket, head) => {
    seen.push(req)
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
    socket.write(answer)
    socket.write(head)
    socket.on('data', bytes => socket.write(bytes)).on('end', () => socket.end())
  })
  server.listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, open }
}

const config = {
  Proxy: { AllowUpgrade: ['127.0.0.1'] },
  Credentials: [{ Name: 'other', Type: 'Connect', Issuer: 'https://idp.test', ClientId: 'me', ClientAuth: 'None' }],
}
const gateway = await startGateway(t, { config })
const usual = [
  'Connection: keep-alive, Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  `Sec-WebSocket-Key: ${key}`,
]

interface Asked {
  readonly by?: TestGateway
  readonly token: string
  readonly lines?: readonly string[]
  readonly start?: string
}

async function ask(
  t: Test,
  url: string,
  { by = gateway, token, lines = usual, start = 'GET' }: Asked,
): Promise<RawClient> {
  const raw = await openRaw(t, by.port)
  const head = [
    `${start} /proxy/${url}/ws HTTP/1.1`,
    'Host: gateway',
    `Gateway-Authorization: Bearer ${token}`,
    ...lines,
  ]
  raw.write(`${head.join('\r\n')}\r\n\r\n`)
  return raw
}

async function opened(t: Test, asked: Asked) {
  const upstream = await startUpstream(t)
  const raw = await ask(t, upstream.url, asked)
  await raw.until(/\r\n\r\n/)
  raw.write('ping')
  t.match(await raw.until(/ping$/), /^HTTP\/1\.1 101 /)
  return { raw, upstream }
}

async function openCount({ manage }: TestGateway): Promise<number> {
  const { text } = await manage('GET', '/metrics')
  return Number(/^agent_gateway_websockets (\d+)$/m.exec(text)?.[1])
}

t.test('an accepted handshake opens a tunnel; the token of the agent stays here', async t => {
  const gateway = await startGateway(t, { config, alone: 'metrics are a gateway’s own' })
  const { id, token } = await gateway.agent()
  const { raw, upstream } = await opened(t, { by: gateway, token, lines: [...usual, 'Sec-WebSocket-Protocol: a, b'] })
  t.match(raw.text(), /\r\nGateway-Request-Id: /)
  const [, requestId = ''] = /Gateway-Request-Id: (\S+)/.exec(raw.text()) ?? []
  const lines = () => gateway.log.filter(line => line['requestId'] === requestId)
  const begin = { agentId: id, method: 'GET', path: '/ws', status: 101, decision: 'Allow', policy: 'allow-all' }
  t.match(await eventually(lines, ({ length }) => length > 0), [{ ...begin, message: 'websocket opened' }])
  t.equal(lines().length, 1, 'the line of its end comes at its end')
  t.equal(await openCount(gateway), 1)
  const [req] = upstream.seen
  t.match(req?.headers, {
    upgrade: 'websocket',
    connection: 'Upgrade',
    'sec-websocket-key': key,
    'sec-websocket-protocol': 'a, b',
  })
  t.notOk('gateway-authorization' in (req?.headers ?? {}))
  raw.write('GET /health HTTP/1.1\r\n\r\n')
  t.match(await raw.until(/GET \/health HTTP\/1\.1\r\n\r\n$/), /ping/, 'nothing in it is a request to the gateway')
  raw.socket.end()
  await raw.closed()
  t.equal(
    await eventually(
      () => upstream.open.size,
      size => size === 0,
    ),
    0,
  )
  t.match((await eventually(lines, ({ length }) => length === 2))[1], {
    ...begin,
    message: 'exchange',
    ending: 'forwarded',
  })
  t.equal(await openCount(gateway), 0)
})

t.test(
  'a client that has said all it will say before the handshake is answered gets the answer, and the end',
  async t => {
    const { token } = await gateway.agent()
    const upstream = await startUpstream(t)
    for (const last of ['last', '']) {
      const raw = await ask(t, upstream.url, { token })
      raw.socket.end(last)
      t.match(await raw.closed(), new RegExp(`^HTTP/1\\.1 101 [\\s\\S]*\r\n\r\n${last}$`))
    }
  },
)

t.test('what is not allowed gets no tunnel, and the upstream gets nothing', async t => {
  const upstream = await startUpstream(t)
  const rule = (effect: string) => ({
    name: effect,
    effect,
    conditions: [{ field: 'input.path', operator: 'eq', value: '/ws' }],
  })
  const cases = { Deny: [403, 'policy_denied'], Hitl: [426, 'websocket_not_supported'] } as const
  for (const [effect, [status, code]] of Object.entries(cases)) {
    const policyName = await gateway.policy({
      name: `ws-${effect.toLowerCase()}`,
      default: 'Allow',
      rules: [rule(effect)],
    })
    const { token } = await gateway.agent({ policyName })
    const text = await (await ask(t, upstream.url, { token })).closed()
    t.match(text, new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*Gateway-Error: ${code}`), effect)
  }
  const { token } = await gateway.agent()
  t.match(await (await ask(t, upstream.url, { token: 'x' })).closed(), /^HTTP\/1\.1 401 /)
  t.match(await (await ask(t, 'http://localhost:1', { token })).closed(), /^HTTP\/1\.1 426 [\s\S]*Upgrade: HTTP\/1\.1/)
  t.match(await (await ask(t, 'http://169.254.169.254', { token })).closed(), /^HTTP\/1\.1 426 /)
  t.strictSame(upstream.seen, [])
})

t.test('a malformed handshake is refused, and what follows it is no request', async t => {
  const upstream = await startUpstream(t)
  const { token } = await gateway.agent()
  const without = (name: string) => usual.filter(line => !line.startsWith(name))
  const cases: Readonly<Record<string, Partial<Asked>>> = {
    'no key': { lines: without('Sec-WebSocket-Key') },
    'two keys': { lines: [...usual, `Sec-WebSocket-Key: ${key}`] },
    'a short key': { lines: [...without('Sec-WebSocket-Key'), 'Sec-WebSocket-Key: eA=='] },
    'another version': { lines: [...without('Sec-WebSocket-Version'), 'Sec-WebSocket-Version: 8'] },
    'not in Connection': { lines: [...without('Connection'), 'Connection: keep-alive'] },
    'two protocols': { lines: [...without('Upgrade'), 'Upgrade: websocket, h2c'] },
    POST: { start: 'POST' },
    'a body': { lines: [...usual, 'Content-Length: 4'] },
  }
  for (const [title, asked] of Object.entries(cases)) {
    const raw = await ask(t, upstream.url, { token, ...asked })
    raw.write(
      `GET /proxy/${upstream.url}/smuggled HTTP/1.1\r\nHost: gateway\r\nGateway-Authorization: Bearer ${token}\r\n\r\n`,
    )
    t.match(await raw.closed(), /^HTTP\/1\.1 4\d\d /, title)
    t.equal(raw.text().match(/HTTP\/1\.1 /g)?.length, 1, title)
  }
  t.strictSame(upstream.seen, [])
})

t.test('an answer to another handshake is refused; one that declines is passed on', async t => {
  const { token } = await gateway.agent()
  const wrong = [
    switching(accepted.slice(0, 2)),
    switching([...accepted, accepted[2]!]),
    switching([...accepted.slice(0, 2), 'Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=']),
    switching([...accepted, 'Sec-WebSocket-Protocol: c']),
    switching([...accepted, 'Sec-WebSocket-Extensions: x']),
    switching(accepted.slice(1)),
  ]
  for (const answer of wrong) {
    const upstream = await startUpstream(t, answer)
    const text = await (await ask(t, upstream.url, { token })).closed()
    t.match(text, /^HTTP\/1\.1 502 [\s\S]*Gateway-Error: upstream_failed/)
    await eventually(
      () => upstream.open.size,
      size => size === 0,
    )
  }
  const declines = await startUpstream(t, 'HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nnope')
  const text = await (await ask(t, declines.url, { token })).closed()
  t.match(text, /^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*nope$/)
  t.notMatch(text, /Gateway-Error/)
})

t.test('a handshake that the upstream gives without being asked is no tunnel', async t => {
  const { token } = await gateway.agent()
  const server = createServer().on('connection', socket => {
    socket.on('error', () => {}).once('data', () => socket.write(switching(accepted)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.equal((await gateway.proxy(token, url)).status, 502)
})

t.test('revoking and quarantining the agent cuts its tunnels before they are answered', async t => {
  for (const change of ['revoke', 'quarantine', 'deactivate']) {
    const { id, token } = await gateway.agent()
    const { raw, upstream } = await opened(t, { token })
    await gateway.manage('POST', `/agents/${id}/${change}`)
    raw.write('after')
    t.notMatch(await raw.closed(), /after/, change)
    t.equal(
      await eventually(
        () => upstream.open.size,
        size => size === 0,
      ),
      0,
    )
  }
})

t.test('a policy that no longer allows it ends a tunnel, one that still does not', async t => {
  const policyName = await gateway.policy({ name: 'ws-changes', default: 'Allow' })
  const { token } = await gateway.agent({ policyName })
  const { raw } = await opened(t, { token })
  await gateway.manage('PUT', `/policies/${policyName}`, {
    name: policyName,
    description: 'the same',
    default: 'Allow',
  })
  raw.write('more')
  await raw.until(/more$/)
  await gateway.manage('PUT', `/policies/${policyName}`, { name: policyName, default: 'Deny' })
  await raw.closed()
  const lines = () => gateway.log.filter(({ status, ending }) => status === 101 && ending === 'broken')
  t.match((await eventually(lines, ({ length }) => length === 4)).at(-1), { refusal: 'policy_denied' })
})

t.test('T83 a tunnel ends when its rule names another credential than the one it was opened with', async t => {
  const policyName = await gateway.policy({ name: 'ws-credential', default: 'Allow' })
  const { token } = await gateway.agent({ policyName })
  const { raw } = await opened(t, { token })
  const conditions = [{ field: 'input.host', operator: 'eq', value: '127.0.0.1' }]
  const rules = [{ name: 'other', effect: 'Allow', credential: 'other', conditions }]
  const answer = await gateway.manage('PUT', `/policies/${policyName}`, { name: policyName, default: 'Deny', rules })
  t.equal(answer.status, 200)
  await raw.closed()
})

t.test('a tunnel ends when time, trust or counters no longer allow its handshake', async t => {
  const clock = createClock(Date.UTC(2026, 0, 5, 10))
  const own = await startGateway(t, { config, clock })
  const is = (field: string, operator: string, value: unknown) => ({ field, operator, value })
  const deny = (name: string, ...conditions: object[]) => ({ name, effect: 'Deny', conditions })
  const rules = {
    window: deny('window', is('time.clock', 'between', '10:05-23:00')),
    counter: deny('counter', is('agent.deniedLast10m', 'gte', 2)),
    trust: deny('trust', is('agent.trustScore', 'lt', 0.48)),
    open: deny('open', is('agent.deniedLast10m', 'gt', 2)),
  }
  const tunnels = []
  for (const [name, rule] of Object.entries(rules)) {
    const denied = deny('denied', is('input.path', 'eq', '/denied'))
    const policyName = await own.policy({ name: `ws-${name}`, default: 'Allow', rules: [rule, denied] })
    const { token } = await own.agent({ policyName })
    tunnels.push({ name, token, ...(await opened(t, { by: own, token })) })
  }
  for (const { token, upstream } of tunnels) {
    for (const _ of [1, 2]) t.equal((await own.proxy(token, `${upstream.url}/denied`)).status, 403)
  }
  clock.jump(6 * 60_000)
  const [open, ...ended] = tunnels.reverse()
  for (const { raw } of ended) await raw.closed()
  const refusals = () => own.log.filter(({ status, ending }) => status === 101 && ending === 'broken')
  t.match(
    await eventually(refusals, ({ length }) => length === 3),
    ended.map(() => ({ refusal: 'policy_denied' })),
  )
  open?.raw.write('more')
  await open?.raw.until(/more$/)
})

t.test('limits on bytes, silence and life, and the expiry of the token, end a tunnel', async t => {
  const cases = {
    upgrade_bytes: { UpgradeMaxBytes: 100 },
    upgrade_idle: { UpgradeIdleSeconds: 1 },
    upgrade_time: { UpgradeMaxSeconds: 1 },
  }
  const clock = createClock()
  for (const [bound, limit] of Object.entries(cases)) {
    const limited = await startGateway(t, { config: { Proxy: { ...config.Proxy, ...limit } }, clock })
    const { id, token } = await limited.agent()
    const { raw } = await opened(t, { by: limited, token })
    raw.write('x'.repeat(100))
    // The limit on bytes may end the tunnel before all of them are back.
    if (bound !== 'upgrade_bytes') await raw.until(/x{100}$/)
    clock.advance(2_000)
    await raw.closed()
    const found = await eventually(
      () => limited.log.find(line => line['limit'] === bound),
      line => line !== undefined,
    )
    t.match(found, { agentId: id, message: 'a limit was reached' })
  }
  const brief = await startGateway(t, { config, clock })
  const { token } = await brief.agent()
  const { raw } = await opened(t, { by: brief, token })
  clock.jump(3_600_000)
  await raw.closed()
  t.match((await brief.exchanges(1))[0], { status: 101, refusal: 'unauthenticated', ending: 'broken' })
})

/** Writes `size` bytes as fast as they are taken. */
function pump(socket: Duplex, size: number) {
  const state = { left: size }
  const more = (): void => {
    while (state.left > 0) {
      state.left -= piece.length
      if (!socket.write(piece)) return void socket.once('drain', more)
    }
  }
  more()
  return state
}
const piece = Buffer.alloc(65_536, 'y')

t.test('a side that does not read stops the other, and loses nothing', async t => {
  // The system's buffers of two connections take 20 MB at most.
  const size = 1_000 * piece.length
  for (const direction of ['down', 'up']) {
    const { token } = await gateway.agent()
    const open = async () => {
      const { raw, upstream } = await opened(t, { token })
      const [far] = upstream.open
      far!.removeAllListeners('data')
      raw.socket.removeAllListeners('data')
      const [from, to] = direction === 'down' ? [far!, raw.socket] : [raw.socket, far!]
      let got = 0
      to.on('data', (bytes: Buffer) => {
        got += bytes.length
      })
      return { from, to, got: () => got }
    }
    const stopped = await open()
    stopped.to.pause()
    const pumped = pump(stopped.from, size)
    const reading = await open()
    pump(reading.from, size)
    t.equal(await eventually(reading.got, got => got === size), size)
    t.ok(pumped.left > size / 2, `${direction}: ${pumped.left} bytes were not taken`)
    stopped.to.resume()
    t.equal(await eventually(stopped.got, got => got === size), size)
  }
})

t.test('each tunnel takes one of the places of its agent', async t => {
  const few = await startGateway(t, {
    config: { ...config, System: { RateLimit: { MaxInFlight: 2 } } },
    alone: 'requests under way are a gateway’s own',
  })
  const { token } = await few.agent()
  const upstream = await startUpstream(t)
  for (let count = 0; count < 2; count++) await (await ask(t, upstream.url, { by: few, token })).until(/\r\n\r\n/)
  t.match(await (await ask(t, upstream.url, { by: few, token })).closed(), /^HTTP\/1\.1 429 [\s\S]*agent_busy/)
})

t.test('a drain ends tunnels with its limit', async t => {
  const stopping = await startGateway(t, { config: { ...config, System: { Server: { DrainSeconds: 1 } } } })
  const { token } = await stopping.agent()
  const { raw } = await opened(t, { by: stopping, token })
  t.equal(await stopping.close(), 1)
  await raw.closed()
})
