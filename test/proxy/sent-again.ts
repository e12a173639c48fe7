/**
 * A kept connection that the upstream closes under a request: what is sent once more, and what is not. Threat T15 of
 * SECURITY.md: nothing is that may no longer be sent.
 */
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { eventually, gatewayThreads, startGateway } from '../fixtures/gateway.ts'
import { startRawServer } from '../fixtures/raw.ts'
import { runs } from '../fixtures/runs.ts'

const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
/** Connections belong to a thread: where they are counted there is one. */
const System = {
  Server: { Threads: 1 },
  RateLimit: { RequestsPerMinute: 1_000_000, Burst: 1_000_000 },
  CircuitBreaker: { Failures: 2 },
}

interface Upstream {
  readonly url: string
  /** `METHOD /path` of each request, in order. */
  readonly seen: readonly string[]
}

/** An upstream that reads request lines, and does with each connection what `onRequest` says. */
async function startUpstream(
  t: Test,
  onRequest: (socket: Socket, line: string, times: number) => unknown,
): Promise<Upstream> {
  const seen: string[] = []
  const { url } = await startRawServer(t, socket => {
    socket.on('data', (bytes: Buffer) => {
      const line = /^[A-Z]+ \/\S*(?= HTTP\/1\.1\r\n)/.exec(bytes.toString('latin1'))?.[0]
      if (line === undefined) return
      seen.push(line)
      onRequest(socket, line, seen.filter(other => other === line).length)
    })
  })
  return { url, seen }
}

const close = (socket: Socket, how: 'end' | 'reset') => (how === 'end' ? socket.end() : socket.resetAndDestroy())

/** Answers `/first`, and all others when they come for the second time; closes the connection at the first. */
const closesOnce = (how: 'end' | 'reset') => (socket: Socket, line: string, times: number) =>
  line.endsWith('/first') || times > 1 ? socket.write(whole) : close(socket, how)

/** Its bodies are held. */
const readsBodies = {
  name: 'reads-bodies',
  default: 'Allow',
  rules: [
    {
      name: 'no-secret',
      effect: 'Deny',
      conditions: [{ field: 'input.bodyText', operator: 'contains', value: 'forbidden' }],
    },
  ],
}

interface Case {
  readonly method: string
  readonly body?: string
  readonly policyName?: string
  readonly status: number
}

const cases: readonly Case[] = [
  ...['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'].map(method => ({ method, status: 200 })),
  ...['POST', 'PATCH', 'PROPFIND'].map(method => ({ method, status: 502 })),
  { method: 'PUT', body: 'streams', status: 502 },
  { method: 'PUT', body: 'is held', policyName: 'reads-bodies', status: 200 },
  { method: 'POST', body: 'is held', policyName: 'reads-bodies', status: 502 },
]

const alone = 'connections to upstreams are a gateway’s own'

for (const how of ['end', 'reset'] as const) {
  t.test(`what is idempotent and has its body still is sent once more after ${how}`, async t => {
    const { url, seen } = await startUpstream(t, closesOnce(how))
    const gateway = await startGateway(t, { alone, config: { System } })
    await gateway.policy(readsBodies)
    const tokens = {
      'allow-all': await gateway.agent(),
      'reads-bodies': await gateway.agent({ policyName: 'reads-bodies' }),
    }
    for (const { method, body, policyName = 'allow-all', status } of cases) {
      const { token } = tokens[policyName as keyof typeof tokens]
      t.equal((await gateway.proxy(token, `${url}/first`)).status, 200)
      const path = `/${body?.replace(' ', '-') ?? 'none'}`
      const answer = await gateway.proxy(token, url + path, { method, ...(body === undefined ? {} : { body }) })
      await answer.arrayBuffer()
      t.equal(answer.status, status, `${method} ${path}`)
      t.equal(seen.filter(line => line === `${method} ${path}`).length, status === 200 ? 2 : 1, `${method} ${path}`)
    }
    const again = cases.filter(({ status }) => status === 200).length
    const lines = await gateway.exchanges(2 * cases.length)
    t.equal(lines.filter(({ sentAgain }) => sentAgain === true).length, again)
    const { text } = await gateway.manage('GET', '/metrics')
    t.ok(text.includes(`\nagent_gateway_upstream_retries_total ${again}\n`))
  })
}

t.test('T77 a request that is sent once more counts once in budgets of calls and of money', async t => {
  const { url, seen } = await startUpstream(t, closesOnce('end'))
  const Hosts = [new URL(url).host]
  const gateway = await startGateway(t, {
    alone,
    config: {
      System,
      Metering: { Hosts },
      Prices: [{ Host: Hosts[0], Model: '*', PerCall: 3 }],
      Budgets: [
        { Name: 'calls', Unit: 'Calls', Limit: 100, Per: 'Month' },
        { Name: 'money', Limit: 100, Per: 'Month' },
      ],
    },
  })
  const { id, token } = await gateway.agent()
  t.equal((await gateway.proxy(token, `${url}/first`)).status, 200)
  t.equal((await gateway.proxy(token, `${url}/speech`, { method: 'PUT' })).status, 200)
  t.strictSame(seen, ['GET /first', 'PUT /speech', 'PUT /speech'])
  const own = async () => JSON.parse((await gateway.manage('GET', `/agents/${id}/budgets`)).text) as object[]
  const budgets = await eventually(own, found => found.every(each => 'reserved' in each && each.reserved === 0))
  t.match(budgets, [
    { budget: 'calls', spent: 2 },
    { budget: 'money', spent: 3 },
  ])
})

t.test('with RetryIdempotent: false nothing is sent twice, and no circuit opens', async t => {
  const { url, seen } = await startUpstream(t, closesOnce('reset'))
  const gateway = await startGateway(t, { alone, config: { System, Proxy: { RetryIdempotent: false } } })
  const { token } = await gateway.agent()
  for (let i = 0; i < 4; i++) {
    t.equal((await gateway.proxy(token, `${url}/first`)).status, 200)
    t.equal((await gateway.proxy(token, `${url}/${i}`)).status, 502)
    t.equal(seen.filter(line => line === `GET /${i}`).length, 1)
  }
})

t.test('a request is sent twice at most, and the second failure counts for the circuit', async t => {
  const { url, seen } = await startUpstream(t, (socket, line) =>
    line.endsWith('/first') ? socket.write(whole) : close(socket, 'end'),
  )
  const gateway = await startGateway(t, { alone, config: { System } })
  const { token } = await gateway.agent()
  for (let i = 0; i < 2; i++) {
    t.equal((await gateway.proxy(token, `${url}/first`)).status, 200)
    t.equal((await gateway.proxy(token, `${url}/breaks`)).status, 502)
  }
  t.equal(seen.filter(line => line === 'GET /breaks').length, 4)
  t.equal((await gateway.proxy(token, `${url}/first`)).status, 503)
})

t.test('what may no longer be sent when the connection breaks is not sent again', async t => {
  const broken = Promise.withResolvers<Socket>()
  const { url, seen } = await startUpstream(t, (socket, line) =>
    line.endsWith('/first') ? socket.write(whole) : broken.resolve(socket),
  )
  const gateway = await startGateway(t, { alone, config: { System } })
  const policy = { name: 'changes', default: 'Allow', rules: [] }
  await gateway.policy(policy)
  const { token } = await gateway.agent({ policyName: 'changes' })
  t.equal((await gateway.proxy(token, `${url}/first`)).status, 200)
  const answer = gateway.proxy(token, `${url}/secret`)
  const socket = await broken.promise
  t.equal((await gateway.manage('PUT', '/policies/changes', { default: 'Deny' })).status, 200)
  socket.resetAndDestroy()
  t.equal((await answer).status, 403)
  t.strictSame(seen, ['GET /first', 'GET /secret'])
})

t.test('a request whose client left is not sent again', async t => {
  const broken = Promise.withResolvers<Socket>()
  const { url, seen } = await startUpstream(t, (socket, line) =>
    line.endsWith('/leaves') ? broken.resolve(socket) : socket.write(whole),
  )
  const gateway = await startGateway(t, { alone, config: { System } })
  const { token } = await gateway.agent()
  t.equal((await gateway.proxy(token, `${url}/first`)).status, 200)
  const leaving = new AbortController()
  const answer = gateway.proxy(token, `${url}/leaves`, { signal: leaving.signal })
  const socket = await broken.promise
  leaving.abort()
  await t.rejects(answer)
  await gateway.exchanges(2)
  socket.resetAndDestroy()
  t.equal((await gateway.proxy(token, `${url}/next`)).status, 200)
  t.strictSame(seen, ['GET /first', 'GET /leaves', 'GET /next'])
})

t.test('what is sent again goes to the addresses that were checked, even if the name has others by now', async t => {
  const clock = createClock()
  const { url, seen } = await startUpstream(t, (socket, line, times) => {
    if (line.endsWith('/moves') && times === 1) clock.advance(60_000)
    return closesOnce('end')(socket, line, times)
  })
  let lookups = 0
  const lookup = async () => {
    lookups += 1
    return [`127.0.0.${lookups}`]
  }
  const gateway = await startGateway(t, { alone, config: { System }, clock, lookup })
  const { token } = await gateway.agent()
  const named = url.replace('127.0.0.1', 'up.test')
  t.equal((await gateway.proxy(token, `${named}/first`)).status, 200)
  t.equal((await gateway.proxy(token, `${named}/moves`)).status, 200)
  t.strictSame(seen, ['GET /first', 'GET /moves', 'GET /moves'])
  t.equal(lookups, 1)
})

t.test('requests at the pace of an upstream that closes idle connections: no GET is lost', async t => {
  // It answers, and closes 0 to 3 turns of the event loop later, whatever is on its way by then.
  let random = 1
  const seen = new Map<string, number>()
  let closedUnder = 0
  const { url } = await startRawServer(t, socket => {
    let closed = false
    socket.on('data', (bytes: Buffer) => {
      const line = /^[A-Z]+ \/\d+/.exec(bytes.toString('latin1'))?.[0]
      if (line === undefined) return
      seen.set(line, (seen.get(line) ?? 0) + 1)
      if (closed) {
        closedUnder += 1
        socket.resetAndDestroy()
        return
      }
      socket.write(whole)
      random = (random * 48_271) % 2_147_483_647
      turns(random % 4, () => {
        closed = true
        if (random % 2 === 0) socket.end()
      })
    })
  })
  const gateway = await startGateway(t, {
    alone,
    config: { System: { ...System, Server: { Threads: gatewayThreads } } },
  })
  const { token } = await gateway.agent()
  const total = 11 * runs(300)
  const lost: string[] = []
  const lane = async (lane: number) => {
    for (let i = lane; i < total; i += 30) {
      const method = i % 11 === 0 ? 'POST' : 'GET'
      const answer = await gateway.proxy(token, `${url}/${i}`, { method })
      await answer.arrayBuffer()
      if (answer.status !== 200) lost.push(`${method} ${answer.status}`)
    }
  }
  await Promise.all(Array.from({ length: 30 }, (_, i) => lane(i)))
  t.ok(closedUnder > runs(100), `${closedUnder} requests met a closed connection`)
  t.strictSame([...new Set(lost)], ['POST 502'])
  const times = [...seen]
  t.equal(times.filter(([line]) => line.startsWith('GET')).length, (total * 10) / 11)
  t.strictSame(
    times.filter(([line, count]) => count > (line.startsWith('GET') ? 2 : 1)),
    [],
  )
})

function turns(count: number, then: () => void): void {
  if (count === 0) then()
  else setImmediate(turns, count - 1, then)
}
