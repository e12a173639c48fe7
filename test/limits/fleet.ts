/** Threat T29 of SECURITY.md: the pace of an agent holds for all gateways of a fleet together. */

import t, { type Test } from 'tap'
import { eventually, onDatabase, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

const burst = 30
const limit = { RequestsPerMinute: 60, Burst: burst }
const Server = { Http: { Port: 0 }, Threads: 2 }

async function start(t: Test, more: object = {}, count = 3) {
  const settings = await createSchema(t)
  const config = {
    ...onDatabase(settings),
    System: { RateLimit: limit, Server },
    ...more,
  }
  const gateways: TestGateway[] = []
  for (let n = 0; n < count; n++) gateways.push(await startGateway(t, { config }))
  const origin = await startOrigin(t)
  return { gateways, origin, admin: settings.admin }
}

type Started = Awaited<ReturnType<typeof start>>

/** Calls of one agent, dealt to all gateways in turn; how many were let pass. */
async function flood({ gateways, origin }: Started, token: string, calls: number): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: calls }, async (_, n) => {
      const { status, headers } = await gateways[n % gateways.length]!.proxy(token, origin.url)
      return { status, wait: headers.get('retry-after') }
    }),
  )
  const refused = answers.filter(({ status }) => status !== 200)
  if (refused.some(({ status, wait }) => status !== 429 || Number(wait) < 1)) throw new Error(JSON.stringify(refused))
  return calls - refused.length
}

/** Counts the seconds that pass, the one that has begun too: in each an agent gains a request. */
function gaining(): () => number {
  const begun = performance.now()
  return () => Math.ceil((performance.now() - begun) / 1_000)
}

/** Of the tests that look at the pace of an agent of their own. */
const three = await start(t, { System: { RateLimit: limit, ManagementRateLimit: limit, Server } })

t.test('three gateways let one burst of an agent pass', async t => {
  const { token } = await three.gateways[0]!.agent()
  const gained = gaining()
  const passed = await flood(three, token, 90)
  // Each gateway lets one request pass while it asks. When the database takes more than a second, each lets a third of a burst pass.
  t.ok(passed <= 2 * burst + 3 + gained(), `${passed} passed`)
  t.ok(passed >= 0.7 * burst, `${passed} passed`)
})

t.test('tokens that a gateway no longer needs are given back to the others', async t => {
  const { gateways, origin, admin } = three
  const agent = await gateways[0]!.agent()
  t.equal(await flood({ ...three, gateways: [gateways[0]!] }, agent.token, 5), 5)
  const held = async () =>
    (await admin.query('select held + before as held from rates where key = $1', [agent.id])).rows
  t.strictSame(await eventually(held, ([row]) => row?.held === 0), [{ held: 0 }])
  const { status } = await gateways[1]!.proxy(agent.token, origin.url)
  t.equal(status, 200)
})

t.test('calls of the management API have one burst in all gateways', async t => {
  const { gateways } = three
  const { token } = await gateways[0]!.agent()
  const gained = gaining()
  const statuses = await Promise.all(
    Array.from(
      { length: 120 },
      async (_, n) => (await gateways[n % 3]!.manage('GET', '/agents', undefined, token)).status,
    ),
  )
  const passed = statuses.filter(status => status === 403).length
  t.equal(statuses.filter(status => status === 429).length, 120 - passed)
  t.ok(passed <= 2 * burst + 3 + gained() && passed >= 0.7 * burst, `${passed} passed`)
})

t.test('with PerGateway each gateway counts by itself', async t => {
  const started = await start(t, { Fleet: { FenceAfterSeconds: 60, RateLimits: 'PerGateway' } }, 2)
  const { token } = await started.gateways[0]!.agent()
  t.ok((await flood(started, token, 80)) >= 2 * burst)
})

t.test('a database that answers late lets no more pass', async t => {
  const settings = await createSchema(t)
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  const config = { ...onDatabase({ ...settings, connectionString: url.href }), System: { RateLimit: limit } }
  const late = await startGateway(t, { config })
  const { token } = await late.agent()
  const started = { gateways: [late], origin: await startOrigin(t), admin: settings.admin }
  // One way.
  line.delayMs = 150
  const gained = gaining()
  let passed = 0
  while (gained() <= 3) passed += await flood(started, token, 40)
  const most = burst + 1 + gained()
  t.ok(passed <= most, `${passed} of ${most}`)
  t.ok(passed >= 0.7 * burst, `${passed} passed`)
})

t.test('a gateway without the database lets its share pass, and waits for nothing', async t => {
  const settings = { ...(await createSchema(t)), timeoutSeconds: 2 }
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  const others = await start(t, onDatabase(settings), 2)
  const config = { ...onDatabase({ ...settings, connectionString: url.href }), System: { RateLimit: limit } }
  const cut = await startGateway(t, { config })
  const { token } = await cut.agent()
  line.onSend = () => false
  const started = { ...others, gateways: [cut] }
  const gained = gaining()
  const passed = await flood(started, token, 60)
  t.ok(passed >= burst / 3 && passed <= burst / 3 + 2 + Math.ceil(gained() / 3), `${passed} passed`)
  await flood(started, token, 1)
  t.equal(typeof (await cut.close()), 'number', 'it stops without the database')
})
