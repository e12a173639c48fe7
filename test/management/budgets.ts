/** Budgets over the API: what it shows is what calls are held against, and what is stored. */
import t from 'tap'
import { eventually, startGateway, type TestAgent } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { scrape } from '../fixtures/scrape.ts'

const origin = await startOrigin(t, (_req, res) =>
  res
    .writeHead(200, { 'Content-Type': 'application/json' })
    .end('{"model":"m","usage":{"prompt_tokens":1,"completion_tokens":1500}}'),
)
const Host = `127.0.0.1:${origin.port}`
const gateway = await startGateway(t, {
  alone: 'counts of one gateway are compared',
  config: {
    Metering: { Hosts: [Host], Currency: 'EUR' },
    // 1 for a thousand tokens that are written.
    Prices: [{ Host, Model: 'm', Output: 1_000 }],
    Budgets: [
      { Name: 'money', Limit: 10, Per: 'Month', Owners: ['spenders'] },
      { Name: 'team', Of: 'Owner', Unit: 'Calls', Limit: 50 },
      { Name: 'counted', Of: 'All', Unit: 'Tokens', Per: 'Month' },
    ],
  },
})
const { manage } = gateway
/** Calls are refused, and not sent, while a busy machine keeps the store from answering in time. */
const chat = ({ token }: TestAgent) =>
  eventually(
    () =>
      gateway.proxy(token, `${origin.url}/v1/chat/completions`, {
        method: 'POST',
        body: '{"model":"m","max_tokens":1000}',
      }),
    ({ headers }) => headers.get('gateway-error') !== 'store_unavailable',
  )
// biome-ignore lint/suspicious/noExplicitAny: whatever the answer is
const read = async (path: string, token?: string): Promise<any> =>
  JSON.parse((await manage('GET', path, undefined, token)).text)
const bot = await gateway.agent({ name: 'bot\u00a0one', ownerId: 'spenders' })
const other = await gateway.agent({ ownerId: 'spenders' })
const stranger = await gateway.agent({ ownerId: 'others' })
const person = async (role: string) => (await gateway.agent({ roles: [role], ownerId: 'people' })).token

t.test('before the first call all amounts are 0', async t => {
  t.match(await read('/budgets'), [
    { name: 'money', limit: 10, currency: 'EUR', spent: 0, holders: 0, highestShare: 0 },
    { name: 'team', of: 'Owner', currency: null },
    { name: 'counted', limit: null, highestShare: null },
  ])
  t.match(await read('/budgets/money'), { budget: { name: 'money' }, items: [], totalCount: 0 })
  t.match(await read(`/agents/${bot.id}/budgets`), [{ budget: 'money', holder: bot.id, spent: 0, limit: 10 }, {}, {}])
})

t.test('what is shown at once is what was charged, and decides the next call', async t => {
  for (const agent of [bot, bot, other]) t.equal((await chat(agent)).status, 200)
  // The end of an answer is charged a moment after the agent has it.
  const own = await eventually(
    () => read(`/agents/${bot.id}/budgets`),
    ([money]) => money.spent === 3,
  )
  // The list has what the pages of its agents have.
  await eventually(
    () => read('/budgets'),
    ([money]) => money.spent === 4.5,
  )
  t.match((await read('/budgets/money')).budget, { spent: 4.5, highestShare: 0.3 })
  t.match(own, [
    { budget: 'money', of: 'Agent', unit: 'Money', spent: 3, reserved: 0, raised: 0, limit: 10 },
    { budget: 'team', holder: 'spenders', spent: 3 },
    { budget: 'counted', holder: '*', spent: 4_503, limit: null },
  ])
  for (let calls = 0; calls < 5; calls++) t.equal((await chat(bot)).status, 200)
  const refused = await chat(bot)
  const [money] = await read(`/agents/${bot.id}/budgets`)
  t.equal(refused.status, 429)
  t.match(await refused.text(), `${money.spent.toFixed(2)} of ${money.limit.toFixed(2)} EUR`)
  t.equal(money.spent, 10.5)
  t.ok(Date.parse(money.from) <= Date.now() && Date.now() < Date.parse(money.resetsAt))
})

t.test('the store has the same once it was told, and who has spent most comes first', async t => {
  const { budget, items } = await eventually(
    () => read('/budgets/money'),
    page => page.budget.calls === 8 && page.items.every(({ reserved }: { reserved: number }) => reserved === 0),
  )
  t.match(items, [
    { holder: bot.id, holderName: 'bot\\u{a0}one', holderOwner: 'spenders', spent: 10.5, calls: 7, estimated: 0 },
    { holder: other.id, spent: 1.5, calls: 1 },
  ])
  t.match(budget, { calls: 8, holders: 2, highestShare: 1.05 })
  t.match(await read('/budgets/money?page=2&pageSize=1'), { items: [{ holder: other.id }], totalCount: 2, page: 2 })
})

t.test('metrics tell how much of each limit is used, and how often calls waited for a lease', async t => {
  const { values } = scrape((await manage('GET', '/metrics')).text)
  t.equal(values.get('agent_gateway_budget_used_ratio{budget="money"}'), 1.05)
  t.equal(values.get('agent_gateway_budget_used_ratio{budget="team"}'), 0.16)
  t.notOk(values.has('agent_gateway_budget_used_ratio{budget="counted"}'), 'it has no limit')
  t.ok(values.get('agent_gateway_budget_lease_waits_total')! > 0, 'the first call of each budget')
})

t.test('an agent reads its own, without the amounts of budgets that others share', async t => {
  const own = await read(`/agents/${bot.id}/budgets`, bot.token)
  t.match(own, [
    { budget: 'money', spent: 10.5, limit: 10 },
    { budget: 'team', holder: 'spenders' },
    { budget: 'counted' },
  ])
  for (const shared of own.slice(1)) for (const name of ['spent', 'limit', 'calls']) t.notOk(name in shared, name)
  t.match(await manage('GET', `/agents/${other.id}/budgets`, undefined, bot.token), { status: 404 })
  t.match(await manage('GET', '/budgets', undefined, bot.token), { status: 403 })
  t.match(await read(`/agents/${stranger.id}/budgets`), [{ budget: 'team' }, { budget: 'counted' }])
})

t.test('reviewers and auditors read all', async t => {
  for (const role of ['reviewer', 'auditor']) {
    const token = await person(role)
    for (const path of ['/budgets', '/budgets/team', `/agents/${bot.id}/budgets`]) {
      t.match(await manage('GET', path, undefined, token), { status: 200 }, `${role} ${path}`)
    }
  }
})

t.test('an unknown budget or agent is 404', async t => {
  for (const path of ['/budgets/none', '/agents/nobody/budgets']) t.match(await manage('GET', path), { status: 404 })
})
