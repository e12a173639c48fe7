/** T77, budgets over three gateways on one database: while their windows turn, when they are raised, and who is told. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { systemClock } from '../../src/runtime/clock.ts'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, onDatabase, startGateway, type TestAgent, type TestGateway } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { createSchema } from '../fixtures/postgres.ts'

const hour = 3_600_000
/** Ahead of the system's time, milliseconds: the window of an hour ends when the test wants it. */
let shift = 0
const now = () => Date.now() + shift
const windowOf = (at: number) => Math.floor(at / hour)
const setTo = (untilHour: number) => {
  shift = Math.ceil(now() / hour) * hour - untilHour - Date.now()
}
// Tokens live on.
setTo(hour / 12)

/** The model server keeps its own bill, and takes its time, so that calls are under way when the window turns. */
let billed = 0
let arrived = 0
const origin = await startOrigin(t, async (_req, res) => {
  arrived += 1
  // The window turns long before it is used up, however slow the machine is: this call is under way then.
  if (arrived === beforeTurn) await turnWindow()
  else await sleep(20 + 180 * Math.random())
  billed += 1
  res
    .writeHead(200, { 'Content-Type': 'application/json' })
    .end('{"model":"m","usage":{"prompt_tokens":0,"completion_tokens":1000}}')
})
/** Calls that the model server gets before the window turns. */
const beforeTurn = 20
async function turnWindow(): Promise<void> {
  const ended = windowOf(now())
  setTo(300)
  while (windowOf(now()) === ended) await sleep(10)
}
const Host = `127.0.0.1:${origin.port}`
const settings = await createSchema(t)
const limit = 150
const config = {
  ...onDatabase(settings),
  System: { RateLimit: { RequestsPerMinute: 600_000, Burst: 10_000 } },
  Metering: { Hosts: [Host] },
  // 1 for a thousand tokens that are written.
  Prices: [{ Host, Model: 'm', Output: 1_000 }],
  Budgets: [
    { Name: 'hourly', Limit: limit, Per: 'Hour', Owners: ['hourly'] },
    { Name: 'few', Unit: 'Calls', Limit: 4, Per: 'Month', Owners: ['few'] },
  ],
}
const clock = { ...systemClock, now }
const gateways: TestGateway[] = []
for (let n = 0; n < 3; n++) gateways.push(await startGateway(t, { config, clock }))
const [a, b, c] = gateways as [TestGateway, TestGateway, TestGateway]

const codeOf = async (at: TestGateway, { token }: TestAgent) => {
  const answer = await at.proxy(token, `${origin.url}/v1/chat/completions`, {
    method: 'POST',
    body: '{"model":"m","max_tokens":2000}',
  })
  await answer.text()
  return answer.headers.get('gateway-error') ?? ''
}
interface Row {
  readonly spent: number
  readonly leased: number
}
const rowsOf = async (budget: string): Promise<readonly Row[]> => {
  const text = `select spent::float8 as spent, (select coalesce(sum(leased), 0)::float8 from spend_leases l
    where l.budget = s.budget and l."from" = s."from" and l.holder = s.holder) as leased
    from spend s where budget = $1 order by "from"`
  return (await settings.admin.query(text, [budget])).rows
}

t.test('each call counts once, in the window in which it was sent, while windows turn under load', async t => {
  const agent = await a.agent({ ownerId: 'hourly' })
  const first = windowOf(now())
  let isOver = false
  const codes = new Set<string>()
  const work = async (at: TestGateway) => {
    while (!isOver) {
      // A refusal of the first window may come when the second one has begun.
      const began = windowOf(now())
      const code = await codeOf(at, agent)
      codes.add(code)
      if (code === 'budget_exceeded' && began > first) isOver = true
      await sleep(code === '' ? 0 : 50)
    }
  }
  await Promise.all(Array.from({ length: 12 }, (_, n) => work(gateways[n % 3]!)))
  t.equal(windowOf(now()), first + 1)
  const rows = await eventually(
    () => rowsOf('hourly'),
    found =>
      found.every(({ leased }) => leased === 0) && found.reduce((sum, { spent }) => sum + spent, 0) === billed * 1e9,
  )
  t.equal(rows.length, 2)
  for (const { spent } of rows) t.ok(spent > 0 && spent <= (limit + 3) * 1e9, `${spent / 1e9} of ${limit}`)
  t.ok(rows[1]!.spent >= (limit - 3) * 1e9, 'the new window was used up')
  // A busy machine may keep the store from answering in time.
  for (const code of ['', 'budget_exceeded', 'budget_reserved', 'store_unavailable']) codes.delete(code)
  t.strictSame([...codes], [])
})

t.test('a raise at one gateway is honoured by all, counts once, and people are told once', async t => {
  const agent = await a.agent({ ownerId: 'few' })
  let passed = 0
  const useUp = async () => {
    for (const at of gateways) {
      await eventually(
        async () => {
          const code = await codeOf(at, agent)
          if (code === '') passed += 1
          return code
        },
        code => code === 'budget_exceeded',
      )
    }
  }
  const told = async (action: string) =>
    JSON.parse((await b.manage('GET', `/audit?action=${action}&subject=few`)).text).totalCount
  await useUp()
  t.equal(passed, 4)
  await eventually(
    () => told('budget.exceeded'),
    count => count === 1,
  )
  const raise = async (at: TestGateway, key: string) => {
    const headers = {
      Authorization: `Bearer ${at.adminToken}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': key,
    }
    const body = JSON.stringify({ holder: agent.id, amount: 3, comment: 'more' })
    return (await fetchDocumented(`${at.url}/budgets/few/raises`, { method: 'POST', headers, body })).status
  }
  const key = randomUUID()
  t.equal(await raise(a, key), 201)
  await raise(b, key)
  for (const at of [c, b]) {
    await eventually(
      () => codeOf(at, agent),
      code => code === '',
    )
    passed += 1
  }
  await useUp()
  t.equal(passed, 7, 'the raise has counted once')
  t.equal(await told('budget.raise'), 1)
  t.equal(await told('budget.exceeded'), 1, 'nobody is told a second time')
})
