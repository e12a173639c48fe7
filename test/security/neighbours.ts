/**
 * Threat T31 of SECURITY.md, and its table of what one agent may take from others: each attack of `bench/neighbours.ts`,
 * by counts instead of times. While the attack stands, its agent is refused with a code, and its neighbour is not.
 */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { createClock } from '../fixtures/clock.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, startGateway, type TestAgent, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { openRaw, type RawClient } from '../fixtures/raw.ts'

interface Scene {
  readonly t: Test
  readonly gateway: TestGateway
  /** An upstream that answers `/503` with that, and `/never` not at all. */
  readonly upstream: string
  readonly hostile: TestAgent
  /** Ends what the attack has under way. */
  readonly over: AbortSignal
}

interface Attack {
  /** Begins, and resolves when it stands. */
  begin(scene: Scene): Promise<unknown>
  /** A call that is refused now, and the code of its refusal; undefined when nothing is refused. */
  readonly refused?: { call(scene: Scene): Promise<Response>; readonly code: string }
}

const conditions = [{ field: 'input.bodyText', operator: 'detects', value: 'iban' }]
const posts = [
  { field: 'input.method', operator: 'eq', value: 'POST' },
  { field: 'input.path', operator: 'eq', value: '/held' },
]
const policy = {
  name: 'reads-bodies',
  default: 'Allow',
  rules: [
    { name: 'held', effect: 'Hitl', priority: 1, conditions: posts },
    { name: 'no-keys', effect: 'Deny', conditions },
  ],
}
/** Default limits, but for those that would take long to reach. */
const config = {
  System: { ManagementRateLimit: { RequestsPerMinute: 300, Burst: 50 } },
  HumanInTheLoop: { MaxPendingRequests: 100, MaxPendingPercentPerAgent: 20 },
  Trust: { QuarantineDenials: 0 },
}
/** One more than System:RateLimit:MaxInFlight. */
const tooMany = 65

const proxied = ({ gateway, hostile, over }: Scene, target: string, init: RequestInit = {}) =>
  gateway.proxy(hostile.token, target, { signal: over, headers: { 'Content-Type': 'application/json' }, ...init })

/** Calls that nobody waits for. */
function hang(scene: Scene, count: number, target: (turn: number) => string): void {
  for (let turn = 0; turn < count; turn++) void proxied(scene, target(turn)).catch(() => {})
}

/** One request too many was refused. Those in flight do not have a place each before their tokens are verified. */
const full = ({ gateway, hostile }: Scene) =>
  eventually(
    () => gateway.log.some(({ limit, agentId }) => limit === 'agent_requests' && agentId === hostile.id),
    isFull => isFull,
  )

const connections = ({ t, gateway }: Scene, count: number, bytes: string): Promise<readonly RawClient[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const client = await openRaw(t, gateway.port)
      client.socket.pause()
      if (bytes !== '') client.write(bytes)
      return client
    }),
  )

const oneMore: Attack['refused'] = {
  call: scene => proxied(scene, `${scene.upstream}/one-more`),
  code: 'agent_busy',
}

const attacks: Readonly<Record<string, Attack>> = {
  'dead names': {
    async begin(scene) {
      hang(scene, tooMany, turn => `http://dead-${turn}.example/`)
      await full(scene)
    },
    refused: oneMore,
  },
  'bodies that never end': {
    async begin(scene) {
      const { hostile, upstream } = scene
      const head = `POST /proxy/${upstream}/never HTTP/1.1\r\nHost: g\r\nGateway-Authorization: Bearer ${hostile.token}\r\n`
      await connections(scene, tooMany, `${head}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"a":`)
      await full(scene)
    },
    refused: oneMore,
  },
  'requests that are never answered': {
    async begin(scene) {
      hang(scene, tooMany, () => `${scene.upstream}/never`)
      await full(scene)
    },
    refused: oneMore,
  },
  '503 answers': {
    async begin(scene) {
      for (let i = 0; i < 5; i++) await (await proxied(scene, `${scene.upstream}/503`)).text()
    },
    refused: { call: scene => proxied(scene, `${scene.upstream}/`), code: 'circuit_open' },
  },
  'detector texts and JSON of 1 MB': {
    async begin(scene) {
      const bodies = ['AA11 BB22 CC33 '.repeat(2 ** 20 / 15), `[${'{},'.repeat(2 ** 20 / 3 - 2)}{}]`]
      for (const body of [...bodies, ...bodies]) {
        void proxied(scene, `${scene.upstream}/`, { method: 'POST', body }).catch(() => {})
      }
      await eventually(
        () => scene.gateway.gateway.inFlight(),
        now => now > 0,
      )
    },
  },
  'requests that are held for review': {
    async begin(scene) {
      for (let i = 0; i < 20; i++) {
        const held = await proxied(scene, `${scene.upstream}/held`, { method: 'POST', body: `{"i":${i}}` })
        scene.t.equal(held.status, 202)
      }
    },
    refused: {
      call: scene => proxied(scene, `${scene.upstream}/held`, { method: 'POST', body: '{}' }),
      code: 'hitl_queue_full',
    },
  },
  'more requests than its rate': {
    async begin(scene) {
      for (let i = 0; i < 100; i++) await (await proxied(scene, `${scene.upstream}/`)).text()
    },
    refused: { call: scene => proxied(scene, `${scene.upstream}/`), code: 'rate_limited' },
  },
  'refused management calls': {
    async begin({ gateway, hostile }) {
      for (let i = 0; i < 50; i++) await gateway.manage('GET', '/agents', undefined, hostile.token)
    },
    refused: {
      call: ({ gateway, hostile }) =>
        fetchDocumented(`${gateway.url}/agents`, { headers: { Authorization: `Bearer ${hostile.token}` } }),
      code: 'rate_limited',
    },
  },
  'connections that never send': { begin: scene => connections(scene, 200, '') },
  'pipelined calls that are never read': {
    begin: scene => connections(scene, 4, 'GET /health HTTP/1.1\r\nHost: g\r\n\r\n'.repeat(20_000)),
  },
}

for (const threads of [1, 2]) {
  t.test(`one hostile agent takes nothing from its neighbour, ${threads} threads`, async t => {
    const waiting = new Set<ServerResponse>()
    const origin = await startOrigin(t, (req, res) => {
      if (req.url === '/503') res.writeHead(503).end()
      else if (req.url !== '/never') req.resume().once('end', () => res.end('ok'))
      else waiting.add(res.once('close', () => waiting.delete(res)))
    })
    const clock = createClock(Date.now())
    const server = { Server: { Threads: threads } }
    const gateway = await startGateway(t, {
      clock,
      // The clock of the database goes on between two calls, and fills a rate again.
      config: { ...config, System: { ...config.System, ...server }, Fleet: { RateLimits: 'PerGateway' } },
      lookup: name => (name.startsWith('dead') ? new Promise(() => {}) : Promise.resolve(['127.0.0.1'])),
    })
    await gateway.policy(policy)

    for (const [name, attack] of Object.entries(attacks)) {
      await t.test(name, async t => {
        const agents = [
          await gateway.agent({ policyName: policy.name }),
          await gateway.agent({ policyName: policy.name }),
        ]
        const [hostile, victim] = agents as [TestAgent, TestAgent]
        const over = new AbortController()
        const scene = { t, gateway, upstream: origin.url, hostile, over: over.signal }
        await attack.begin(scene)
        if (attack.refused !== undefined) {
          const answer = await attack.refused.call(scene)
          t.equal(answer.headers.get('gateway-error'), attack.refused.code)
          t.ok(answer.headers.has('retry-after') || attack.refused.code === 'hitl_queue_full')
        }
        for (let i = 0; i < 5; i++) {
          const read = await gateway.proxy(victim.token, `http://well.example:${origin.port}/`)
          t.equal(await read.text(), 'ok')
          const write = await gateway.proxy(victim.token, `${origin.url}/`, { method: 'POST', body: '{"a":1}' })
          t.equal(await write.text(), 'ok')
        }
        const held = await gateway.proxy(victim.token, `${origin.url}/held`, { method: 'POST', body: '{}' })
        t.equal(held.status, 202)
        t.equal((await fetchDocumented(`${gateway.url}/health`)).status, 200)
        t.equal((await gateway.manage('GET', '/agents')).status, 200)

        over.abort()
        for (const res of waiting) res.destroy()
      })
      t.equal(
        await eventually(
          () => gateway.gateway.inFlight(),
          count => count === 0,
        ),
        0,
        'nothing of it is left',
      )
      // Failures that two agents see within a minute open the circuit of both.
      clock.advance(61_000)
    }
  })
}
