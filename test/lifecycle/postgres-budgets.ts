/** T77, budgets of gateways on one database: they lease from one row, and a gateway without the database has its lease. */
import t from 'tap'
import { eventually, onDatabase, startGateway, type TestAgent, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'

const settings = await createSchema(t)
const line = await startTcpProxy(t, Number(new URL(settings.connectionString).port))
const throughLine = Object.assign(new URL(settings.connectionString), { port: String(line.port) }).href
const configOf = (connectionString: string) => ({
  ...onDatabase({ ...settings, connectionString, timeoutSeconds: 2 }),
  // Soon, and yet not by a machine that is busy.
  Fleet: { FenceAfterSeconds: 8 },
  Budgets: [
    { Name: 'few', Unit: 'Calls', Limit: 12, Per: 'Month', Owners: ['few'] },
    { Name: 'many', Unit: 'Calls', Limit: 10_000, Per: 'Month', Owners: ['many'] },
    { Name: 'counted', Unit: 'Calls', Per: 'Month', Owners: ['counted'] },
  ],
})
const a = await startGateway(t, { config: configOf(settings.connectionString) })
const b = await startGateway(t, { config: configOf(throughLine) })
const origin = await startOrigin(t)

const get = (at: TestGateway, { token }: TestAgent) => at.proxy(token, origin.url)
const codeOf = async (at: TestGateway, agent: TestAgent) => {
  const { status, headers } = await get(at, agent)
  return status === 200 ? '' : `${status} ${headers.get('gateway-error')}`
}
const leasesOf = async (budget: string) => {
  const text = 'select sum(leased)::integer as leased, sum(spent)::integer as told from spend_leases where budget = $1'
  return (await settings.admin.query(text, [budget])).rows[0] as { leased: number; told: number }
}
const spentOf = async (budget: string): Promise<number> =>
  (await settings.admin.query('select sum(spent)::integer as spent from spend where budget = $1', [budget])).rows[0]
    .spent

/** What is spent and was no call. */
const forfeitedOf = async (budget: string): Promise<number> =>
  (await settings.admin.query('select sum(spent - calls)::integer as lost from spend where budget = $1', [budget]))
    .rows[0].lost

t.test('calls at once through two gateways pass as often as the limit says', async t => {
  const agent = await a.agent({ ownerId: 'few' })
  const codes = await Promise.all(Array.from({ length: 40 }, (_, n) => codeOf(n % 2 === 0 ? a : b, agent)))
  let passed = codes.filter(code => code === '').length
  // What one of them had leased ahead comes back.
  for (const at of [a, b]) {
    await eventually(
      async () => {
        const code = await codeOf(at, agent)
        if (code === '') passed += 1
        return code
      },
      code => code === '429 budget_exceeded',
    )
  }
  t.ok(passed <= 12, `${passed} passed`)
  // On a machine that is busy a gateway may be taken for gone, and what it had leased counts as spent.
  await eventually(
    async () => passed + (await forfeitedOf('few')),
    count => count === 12,
  )
})

t.test('a gateway without calls gives its lease back', async t => {
  const agent = await a.agent({ ownerId: 'counted' })
  for (let calls = 0; calls < 3; calls++) for (const at of [a, b]) t.equal(await codeOf(at, agent), '')
  await eventually(
    () => spentOf('counted'),
    spent => spent === 6,
  )
  await eventually(
    () => leasesOf('few'),
    ({ leased }) => leased === 0,
  )
  t.equal(await spentOf('few'), 12, 'all is told')
})

t.test('without the database a lease is used up, then calls are refused, and those after the fence too', async t => {
  const agent = await a.agent({ ownerId: 'many' })
  // Its pace gives it a lease ahead.
  for (let calls = 0; calls < 30; calls++) t.equal(await codeOf(b, agent), '')
  const { leased, told } = await leasesOf('many')
  line.blackHole()
  const codes = await Promise.all(Array.from({ length: leased + 20 }, () => codeOf(b, agent)))
  const passed = codes.filter(code => code === '').length
  t.ok(passed > 0 && 30 + passed <= told + leased, `${30 + passed} of ${told + leased}`)
  t.strictSame([...new Set(codes)].sort(), ['', '503 store_unavailable'])
  await eventually(
    () => codeOf(b, agent),
    code => code === '503 fenced',
  )
  t.equal(await codeOf(a, agent), '', 'others go on')
  line.heal()
  await eventually(
    () => codeOf(b, agent),
    code => code === '',
  )
})

t.test('what a gateway has leased counts as spent when its row goes, and nothing else does', async t => {
  const agent = await a.agent({ ownerId: 'many' })
  for (let calls = 0; calls < 20; calls++) t.equal(await codeOf(a, agent), '')
  // As it is when a gateway was killed: its lease and its row stay.
  const gone = 'aaaaaaaa-0000-4000-8000-000000000000'
  await settings.admin.query(
    `insert into members (id, beat, applied, name, version, started, "fenceMs", signs, accepts, digests, addresses)
      select $1, 1, applied, name, version, started, "fenceMs", signs, accepts, digests, addresses from members limit 1`,
    [gone],
  )
  await settings.admin.query(
    `insert into spend_leases (budget, holder, "from", gateway, until, leased, spent, estimated, calls)
      select budget, holder, "from", $1, until, 500, 0, 0, 0 from spend_leases where budget = 'many' and holder = $2 limit 1`,
    [gone, agent.id],
  )
  const spent = await eventually(
    async () =>
      (await settings.admin.query(`select spent::integer from spend where budget = 'many' and holder = $1`, [agent.id]))
        .rows[0].spent,
    found => found >= 500,
  )
  t.equal(spent, 520)
})
