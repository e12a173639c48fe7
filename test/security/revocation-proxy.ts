/**
 * Threat T15 of SECURITY.md: every place where a proxied request waits, times every way to lose the right to go on. After the
 * change was answered nothing leaves. The rows that the management API and the identity provider add stand in
 * revocation-management.ts and revocation-external.ts.
 *
 * Not in the table, since no request is affected:
 * - Policy deleted: 409 `in_use` while an agent or a setting names it (test/management/delete-policy.ts).
 * - The replay of an approved request that has left when its agent is revoked: it runs to completion and is recorded. The
 *   answer is the reviewer's; what an upstream has begun is not undone by hiding its outcome. Before it leaves it is not
 *   sent (the row `verdict` of revocation-management.ts).
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { TLSSocket } from 'node:tls'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { createClock, type ManualClock } from '../fixtures/clock.ts'
import { eventually, startGateway, type TestAgent, type TestGateway } from '../fixtures/gateway.ts'
import { type Origin, type Seen, startOrigin } from '../fixtures/origin.ts'
import { openRaw } from '../fixtures/raw.ts'

const certFile = fileURLToPath(new URL('../fixtures/tls/cert.pem', import.meta.url))
const key = readFileSync(new URL('../fixtures/tls/key.pem', import.meta.url))

/** Rules of every agent here, by path. */
const rules = [
  {
    name: 'reads',
    effect: 'Deny',
    conditions: [
      { field: 'input.path', operator: 'eq', value: '/body' },
      { field: 'input.bodyText', operator: 'contains', value: 'forbidden' },
    ],
  },
  { name: 'held', effect: 'Hitl', conditions: [{ field: 'input.path', operator: 'eq', value: '/held' }] },
  {
    ...{ name: 'waits', effect: 'Hitl', waitSeconds: 600 },
    conditions: [{ field: 'input.path', operator: 'in', value: ['/waits', '/joined', '/mcp'] }],
  },
]

/** The upstream answers these when it is released. */
const waitingPaths = new Set(['/stream', '/slow', '/occupied'])

interface Bench {
  readonly gateway: TestGateway
  readonly origin: Origin
  readonly clock: ManualClock
  /** Connections to the origin whose TLS handshake waits. */
  readonly dialled: () => number
  readonly tlsPort: number
  /** Questions for names that wait. */
  readonly asked: () => number
  readonly threads: number
  /** Other agents, whose tokens are good until `tokensExpire`. */
  other(n: number): Promise<TestAgent>
  tokensExpire(): void
  /** Lets things wait again. */
  hold(): void
  /** Lets everything go on that waits. */
  release(): void
}

const tokenMs = 60_000
/** Connections to one origin in each thread; one agent has half of them. */
const most = 8

async function startBench(t: Test, threads: number): Promise<Bench> {
  const clock = createClock()
  let waiting: (() => void)[] = []
  let isReleased = false
  const later = (work: () => void) => void waiting.push(work)
  const origin = await startOrigin(t, (req, res) => {
    if (req.url === '/stream') res.write('begun')
    if (waitingPaths.has(req.url ?? '') && !isReleased) later(() => res.end('all of it'))
    else req.on('end', () => res.end('done'))
  })
  let dialled = 0
  const tls = createServer(socket => {
    dialled += 1
    socket.on('error', () => {})
    later(() => {
      const secure = new TLSSocket(socket, { isServer: true, cert: readFileSync(certFile), key })
      secure.on('error', () => {})
      secure.on('data', () => origin.seen.push({ target: 'over TLS' } as never))
    })
  })
  await new Promise<void>(resolve => tls.listen(0, '127.0.0.1', resolve))
  t.teardown(() => tls.close())
  const { port: tlsPort } = tls.address() as { port: number }
  let asked = 0
  const gateway = await startGateway(t, {
    clock,
    lookup: async name => {
      if (name.endsWith('.slow.test')) {
        asked += 1
        if (!isReleased) await new Promise<void>(later)
      }
      return ['127.0.0.1']
    },
    config: {
      System: {
        Server: { Threads: threads, IdleTimeoutSeconds: 3_600 },
        RateLimit: { RequestsPerMinute: 1_000_000, Burst: 100_000 },
      },
      Security: { AgentAuth: { TokenIssuance: { Expiration: '00:01:00' } } },
      Proxy: { CaFile: certFile, HeadersTimeoutSeconds: 3_600, MaxConnectionsPerOrigin: threads * most },
      HumanInTheLoop: { LeaseSeconds: 7_200 },
    },
  })
  const others: Promise<TestAgent>[] = []
  return {
    ...{ gateway, origin, clock, tlsPort, threads },
    other: n => (others[n] ??= gateway.agent()),
    tokensExpire() {
      clock.advance(tokenMs + 1_000)
      others.length = 0
    },
    dialled: () => dialled,
    asked: () => asked,
    hold() {
      isReleased = false
    },
    release() {
      isReleased = true
      const all = waiting
      waiting = []
      for (const work of all) work()
    },
  }
}

/** A request that waits, as its client sees it. */
interface Waiting {
  /** Sends what the client has held back. */
  goOn(): void
  /** What came in the end: status and code, or `broken` behind a head that was sent before. */
  readonly outcome: () => Promise<string>
  readonly closed: () => boolean
}

type Wait = () => Promise<unknown>

interface Place {
  /** Comes before the requests; resolves with the connections that must end before the cell does. */
  readonly before?: (t: Test, bench: Bench) => Promise<unknown>
  readonly path: string
  /** Head fields and what is sent with them; the rest comes later. */
  readonly sent?: readonly [head: string, first: string, rest: string]
  readonly url?: (bench: Bench, n: number) => string
  /** Called before; what it gives resolves when so many requests wait there. */
  readonly waits: (bench: Bench, count: number) => Wait | Promise<Wait>
  /** The answer was under way: the connection breaks. */
  readonly broken?: true
  /** Its bytes, or some of them, left before. */
  readonly left?: true
  /** The requests are equal, and one held request stands for all of them. */
  readonly joined?: true
  /** The refusal is a message of a stream of events. */
  readonly inStream?: true
  /** Its name is not looked up yet, and must not be once the right is lost. */
  readonly unasked?: true
}

const chunked: Place['sent'] = ['Transfer-Encoding: chunked\r\n', '3\r\none\r\n', '3\r\ntwo\r\n0\r\n\r\n']
let names = 0

const seenAt = (path: string) => (bench: Bench, count: number) => () =>
  eventually(
    () => bench.origin.seen.filter(({ target }) => target === path).length,
    seen => seen === count,
  )

const inFlight = (bench: Bench, count: number) => () =>
  eventually(
    () => bench.gateway.gateway.inFlight(),
    now => now === count,
  )

/** So many requests that each thread gets enough of each agent's: the kernel gives connections to any of them. */
const occupants = ({ threads }: Bench): number => threads * most * 5

/** Two other agents have every connection to the upstream, in every thread. */
async function occupy(t: Test, bench: Bench): Promise<void> {
  const agents = [await bench.other(0), await bench.other(1)]
  const clients = occupants(bench)
  const place = { path: '/occupied', waits: inFlight }
  const tokens = Array.from({ length: clients }, (_, n) => agents[n % 2]?.token ?? '')
  await Promise.all(tokens.map((token, n) => open(t, bench, token, place, n)))
  await seenAt('/occupied')(bench, bench.threads * most)()
  await inFlight(bench, clients)()
}

/** So many more requests are held. */
const pending = async (bench: Bench, count: number) => {
  const held = async () => JSON.parse((await bench.gateway.manage('GET', '/hitl')).text).length
  const before = await held()
  return () => eventually(held, now => now === before + count)
}

const mcpHead = 'Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n'
const mcpCall = '{"jsonrpc":"2.0","id":1,"method":"tools/call"}'

const places: Readonly<Record<string, Place>> = {
  'request body': {
    path: '/body',
    sent: ['Content-Length: 6\r\n', 'one', 'two'],
    waits: inFlight,
  },
  'request body, for a name that is not looked up yet': {
    path: '/body',
    url: bench => `http://n${names}.slow.test:${bench.origin.port}/body`,
    sent: ['Content-Length: 6\r\n', 'one', 'two'],
    waits: inFlight,
    unasked: true,
  },
  'request body that will be held': {
    path: '/held',
    sent: ['Content-Length: 6\r\n', 'one', 'two'],
    waits: inFlight,
  },
  connection: {
    path: '/connection',
    before: occupy,
    waits: (bench, count) => inFlight(bench, count + occupants(bench)),
  },
  'name look-up': {
    path: '/name',
    url: bench => `http://n${names}.slow.test:${bench.origin.port}/name`,
    waits: (bench, count) => {
      const before = bench.asked()
      return async () => {
        await eventually(bench.asked, now => now > before)
        await inFlight(bench, count)()
      }
    },
  },
  dial: {
    path: '/dial',
    url: bench => `https://idp.test:${bench.tlsPort}/dial`,
    waits: (bench, count) => {
      const before = bench.dialled()
      return () => eventually(bench.dialled, now => now === before + count)
    },
  },
  'head of the answer': { path: '/slow', waits: seenAt('/slow'), left: true },
  'body of the answer': { path: '/stream', waits: seenAt('/stream'), broken: true, left: true },
  upload: {
    path: '/upload',
    sent: chunked,
    waits: (bench, count) => async () => {
      await seenAt('/upload')(bench, count)()
      const bodies = () => bench.origin.seen.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0)
      await eventually(bodies, bytes => bytes === 3 * count)
    },
    left: true,
  },
  'verdict, on the connection': {
    path: '/held',
    sent: ['Prefer: wait=50\r\nContent-Length: 0\r\n', '', ''],
    waits: pending,
  },
  'verdict, as the rule says': { path: '/waits', sent: ['Content-Length: 0\r\n', '', ''], waits: pending },
  'verdict, joined': {
    path: '/joined',
    sent: ['Content-Length: 0\r\n', '', ''],
    waits: async (bench, count) => {
      const [held, all] = [await pending(bench, 1), inFlight(bench, count)]
      return async () => {
        await held()
        await all()
      }
    },
    joined: true,
  },
  'verdict, in a stream of an MCP client': {
    path: '/mcp',
    sent: [`${mcpHead}Content-Length: ${mcpCall.length}\r\n`, mcpCall, ''],
    waits: pending,
    inStream: true,
  },
}

interface Way {
  /** Takes the right away; what it gives was answered. */
  readonly take: (bench: Bench, agent: TestAgent, policy: string) => Promise<number>
  readonly outcome: string
  /** What is under way goes on: why. */
  readonly keeps?: string
}

const status = (action: string, code: string): Way => ({
  take: async ({ gateway }, { id }) => (await gateway.manage('POST', `/agents/${id}/${action}`)).status,
  outcome: `403 ${code}`,
})

const oneRequest = 'a policy decides whether a request leaves: this one left before the change, and runs to its end'

const ways: Readonly<Record<string, Way>> = {
  revoked: status('revoke', 'agent_revoked'),
  quarantined: status('quarantine', 'agent_quarantined'),
  deactivated: status('deactivate', 'agent_inactive'),
  deleted: {
    take: async ({ gateway }, { id }) => (await gateway.manage('DELETE', `/agents/${id}`)).status,
    outcome: '401 unauthenticated',
  },
  'policy replaced': {
    take: async ({ gateway }, _, policy) =>
      (await gateway.manage('PUT', `/policies/${policy}`, { default: 'Deny', rules: [] })).status,
    outcome: '403 policy_denied',
    keeps: oneRequest,
  },
  'policy unassigned': {
    take: async ({ gateway }, { id }) =>
      (await gateway.manage('PUT', `/agents/${id}/policy`, { policyName: null })).status,
    outcome: '403 policy_denied',
    keeps: oneRequest,
  },
  'token expired': {
    take: async bench => {
      bench.tokensExpire()
      return 200
    },
    outcome: '401 unauthenticated',
    keeps: 'a token lets a request leave: this one left while it was good, and runs to its end',
  },
}

/** Why a cell does not apply. */
function reasonAgainst(how: string, where: string): string | undefined {
  if (!where.startsWith('verdict')) return undefined
  if (how.startsWith('policy')) return 'decided when it is approved: test/proxy/hitl-decided-again.ts'
  return how === 'token expired' ? 'answered when the wait ends: see below' : undefined
}

async function open(t: Test, bench: Bench, token: string, place: Place, n: number): Promise<Waiting> {
  const url = place.url?.(bench, n) ?? bench.origin.url + place.path
  const [head, first, rest] = place.sent ?? ['', '', '']
  const lines = head.replace('%n', String(n))
  const method = place.sent === undefined ? 'GET' : 'POST'
  const raw = await openRaw(t, bench.gateway.port)
  let closed = false
  raw.socket.on('close', () => {
    closed = true
  })
  raw.write(
    // The number makes it another request: the same one would join the first that is held.
    `${method} /proxy/${url} HTTP/1.1\r\nHost: x\r\nX-Number: ${place.joined ? 0 : n}\r\nGateway-Authorization: Bearer ${token}\r\n${lines}\r\n${first}`,
  )
  return {
    goOn: () => raw.write(rest),
    closed: () => closed,
    async outcome() {
      if (place.inStream) {
        const text = await raw.until(/"jsonrpc".*\n/)
        return `${/"status":(\d+)/.exec(text)?.[1]} ${/"code":"(\w+)"/.exec(text)?.[1]}`
      }
      const text = await (place.broken ? raw.closed() : raw.until(/\r\n\r\n/))
      if (place.broken) return text.includes('all of it') ? 'whole' : 'broken'
      return `${text.slice(9, 12)} ${/^gateway-error: (.*)$/im.exec(text)?.[1]?.trim()}`
    },
  }
}

const whatCame = ({ target, bodyBytes, done }: Seen) => [target, bodyBytes, done]

async function cell(t: Test, bench: Bench, [place, way]: readonly [Place, Way], clients: number): Promise<void> {
  const { gateway, origin } = bench
  await inFlight(bench, 0)()
  origin.seen.length = 0
  bench.hold()
  const policy = await gateway.policy({ name: `p${++names}`, default: 'Allow', rules })
  const agent = await gateway.agent({ policyName: policy })
  await place.before?.(t, bench)
  const waits = await place.waits(bench, clients)
  const requests = await Promise.all(Array.from({ length: clients }, (_, n) => open(t, bench, agent.token, place, n)))
  await waits()
  t.equal(await way.take(bench, agent, policy), 200)
  const paths = new Set(['/other', '/occupied'])
  const seen = () => JSON.stringify(origin.seen.filter(({ target }) => !paths.has(target)).map(whatCame))
  const before = seen()
  const asked = bench.asked()
  bench.release()
  for (const request of requests) request.goOn()
  const outcomes = await Promise.all(requests.map(request => request.outcome()))
  t.strictSame([...new Set(outcomes)], [place.broken ? 'broken' : way.outcome])
  await inFlight(bench, 0)()
  // Another agent's request comes behind whatever could still be on its way.
  const other = await bench.other(0)
  t.equal((await gateway.proxy(other.token, `${origin.url}/other`)).status, 200)
  t.equal(seen(), place.left ? before : '[]', 'the upstream saw nothing more')
  if (place.unasked) t.equal(bench.asked(), asked, 'no name was looked up')
}

/** What a grant lets pass waits for a connection while the grant is withdrawn: it is held as if there had been none. */
async function grantCell(t: Test, bench: Bench, clients: number): Promise<void> {
  const { gateway, origin } = bench
  await inFlight(bench, 0)()
  bench.hold()
  const policy = await gateway.policy({ name: `p${++names}`, default: 'Allow', rules })
  const agent = await gateway.agent({ policyName: policy })
  const reviewer = await gateway.agent({ roles: ['reviewer'] })
  const held = await gateway.proxy(agent.token, `${origin.url}/held`, { method: 'POST' })
  const path = `/hitl/${held.headers.get('gateway-hitl-id')}/approve`
  const approved = await gateway.manage('POST', path, { grant: { minutes: 5, maxUses: 100 } }, reviewer.token)
  const grant = approved.headers.get('gateway-hitl-grant')
  origin.seen.length = 0
  await occupy(t, bench)
  const place: Place = {
    path: '/held',
    sent: ['Content-Length: 0\r\nIdempotency-Key: k%n\r\n', '', ''],
    waits: inFlight,
  }
  const requests = await Promise.all(Array.from({ length: clients }, (_, n) => open(t, bench, agent.token, place, n)))
  await eventually(
    async () => JSON.parse((await gateway.manage('GET', `/audit?subject=${grant}`)).text).items.length,
    entries => entries === clients + 1,
  )
  t.equal((await gateway.manage('DELETE', `/hitl/grants/${grant}`)).status, 200)
  bench.release()
  const outcomes = await Promise.all(requests.map(request => request.outcome()))
  t.strictSame([...new Set(outcomes)], ['202 undefined'])
  t.equal(origin.seen.filter(({ target }) => target === '/held').length, 0)
}

/** The token expires while the call waits for the verdict. The approval sends; the answer is not for the expired token. */
async function expiryCell(t: Test, bench: Bench, clients: number): Promise<void> {
  const { gateway, origin } = bench
  await inFlight(bench, 0)()
  origin.seen.length = 0
  const policy = await gateway.policy({ name: `p${++names}`, default: 'Allow', rules })
  const agent = await gateway.agent({ policyName: policy })
  const place = places['verdict, on the connection'] as Place
  const pending = async () =>
    JSON.parse((await gateway.manage('GET', `/hitl?agentId=${agent.id}`)).text) as readonly { readonly id: string }[]
  const requests = await Promise.all(Array.from({ length: clients }, (_, n) => open(t, bench, agent.token, place, n)))
  const held = await eventually(pending, items => items.length === clients)
  bench.tokensExpire()
  const { token } = await gateway.agent({ roles: ['reviewer'] })
  for (const { id } of held) {
    t.equal((await gateway.manage('POST', `/hitl/${id}/approve`, {}, token)).status, 200)
  }
  const outcomes = await Promise.all(requests.map(request => request.outcome()))
  t.strictSame([...new Set(outcomes)], ['401 unauthenticated'])
  t.equal(origin.seen.length, clients)
}

for (const threads of [1, 2]) {
  t.test(`${threads} of threads`, async t => {
    const bench = await startBench(t, threads)
    t.test('grant withdrawn while it waits for: connection', async t => grantCell(t, bench, threads === 1 ? 1 : 4))
    t.test('token expired while it waits for: verdict', async t => expiryCell(t, bench, threads === 1 ? 1 : 4))
    for (const [where, place] of Object.entries(places)) {
      for (const [how, way] of Object.entries(ways)) {
        const reason = (place.left && way.keeps) || reasonAgainst(how, where)
        if (reason !== undefined) t.comment(`${how} while it waits for: ${where}: does not apply: ${reason}`)
        else {
          const clients = threads === 1 ? Number(place.joined ?? false) + 1 : 4
          t.test(`${how} while it waits for: ${where}`, async t => cell(t, bench, [place, way], clients))
        }
      }
    }
  })
}
