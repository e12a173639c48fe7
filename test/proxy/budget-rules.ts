/** T77, budgets and policies: rules choose the budget of their calls, and read what is spent. */
import t from 'tap'
import { eventually, startGateway, type TestAgent } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t, (_req, res) =>
  res
    .writeHead(200, { 'Content-Type': 'application/json' })
    .end('{"usage":{"prompt_tokens":1,"completion_tokens":2000}}'),
)
const Host = `127.0.0.1:${origin.port}`
const other = await startOrigin(t)
const of = { Per: 'Month', Unit: 'Calls' } as const
const gateway = await startGateway(t, {
  alone: 'counts of one gateway are compared',
  config: {
    Metering: { Hosts: [Host] },
    // 1 for a thousand tokens that are written.
    Prices: ['m', 'small'].map(Model => ({ Host, Model, Output: 1_000 })),
    Budgets: [
      { Name: 'large', Limit: 100, Per: 'Month', Owners: ['models'] },
      { Name: 'day', Owners: ['models'] },
      { Name: 'month', Per: 'Month', Owners: ['models'] },
      { Name: 'tokens', Unit: 'Tokens', Owners: ['models'] },
      { Name: 'asks', ...of, Limit: 1, Owners: ['askers'], AtLimit: 'Hitl' },
      { Name: 'pool', ...of, Of: 'All', Limit: 4, Owners: ['pool'] },
    ],
  },
})
const { manage } = gateway
type Condition = readonly [field: string, operator: string, value: unknown]
const rule = (effect: string, given: readonly Condition[], more: object = {}) => ({
  ...{ name: `${effect} ${given.join()}`, effect, ...more },
  conditions: given.map(([field, operator, value]) => ({ field, operator, value })),
})
async function agentWith(ownerId: string, rules: readonly object[]): Promise<TestAgent> {
  const name = `p${Math.random()}`
  t.equal((await manage('POST', '/policies', { name, rules })).status, 201)
  return gateway.agent({ ownerId, policyName: name })
}
const call = ({ token }: TestAgent, body?: object, url = `${origin.url}/v1/chat/completions`) =>
  gateway.proxy(token, url, {
    headers: { 'Content-Type': 'application/json', Prefer: 'wait=0' },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify({ max_tokens: 2_000, ...body }) }),
  })
/** What the agent has spent of its budgets, by their names. */
async function spentBy({ id }: TestAgent): Promise<Readonly<Record<string, number>>> {
  const list: { budget: string; spent: number }[] = JSON.parse((await manage('GET', `/agents/${id}/budgets`)).text)
  return Object.fromEntries(list.map(({ budget, spent }) => [budget, spent]))
}

const ofModels = [
  rule('Hitl', [['llm.costAtMost', 'gt', 5]], { priority: 20 }),
  rule('Deny', [['agent.spendToday', 'gte', 8]], { priority: 10 }),
  rule('Allow', [['llm.model', 'eq', 'm']], { budget: 'large', priority: 5 }),
  rule('Allow', []),
]

t.test('a budget that a rule names counts what the rule allows; others count all', async t => {
  const agent = await agentWith('models', ofModels)
  for (const model of ['m', 'small', 'm']) t.equal((await call(agent, { model })).status, 200)
  const spent = await eventually(
    () => spentBy(agent),
    ({ day }) => day === 6,
  )
  t.match(spent, { large: 4, month: 6, tokens: 6_003 })
})

t.test('an agent whose policy does not name it has all its calls counted there', async t => {
  const agent = await agentWith('models', [rule('Allow', [])])
  t.equal((await call(agent, { model: 'small' })).status, 200)
  await eventually(
    () => spentBy(agent),
    ({ large }) => large === 2,
  )
})

t.test('rules read what the agent has spent, from its first call on', async t => {
  const agent = await agentWith('models', ofModels)
  for (let calls = 0; calls < 4; calls++) t.equal((await call(agent, { model: 'm' })).status, 200)
  await eventually(
    () => spentBy(agent),
    ({ day }) => day === 8,
  )
  const seen = origin.seen.length
  const refused = await call(agent, { model: 'm' })
  t.equal(refused.headers.get('gateway-error'), 'policy_denied')
  t.equal(origin.seen.length, seen, 'the upstream saw nothing')
  t.equal((await call(await agentWith('models', ofModels), { model: 'm' })).status, 200, 'another one has its own')
})

t.test('without a budget that counts it, what is spent cannot be read, and a Deny rule applies', async t => {
  const agent = await agentWith('others', ofModels)
  const refused = await call(agent, undefined, `${other.url}/x`)
  t.equal(refused.headers.get('gateway-error'), 'policy_denied')
})

t.test('a person is asked before one dear call, and it counts when it was approved', async t => {
  const agent = await agentWith('models', ofModels)
  const held = await call(agent, { model: 'm', max_tokens: 6_000 })
  t.equal(held.status, 202)
  t.equal((await call(agent, { model: 'm', max_tokens: 1_000 })).status, 200, 'a cheap one passes')
  t.equal((await call(agent, { model: 'unpriced' })).status, 202, 'what it costs is not known')
  t.equal((await call(agent, undefined, `${origin.url}/v1/models`)).status, 200, 'a list of models costs nothing')
  t.equal((await call(agent, {}, `${other.url}/x`)).status, 200, 'no call of a model')
  t.equal((await call(agent, {}, `${origin.url}/v1/batches`)).status, 202, 'no answer tells what it costs')
  const approved = await manage('POST', `/hitl/${held.headers.get('gateway-hitl-id')}/approve`, {})
  t.equal(approved.status, 200)
  const spent = await eventually(
    () => spentBy(agent),
    ({ day }) => day === 4,
  )
  t.equal(spent['large'], 2, 'a person has allowed it, not the rule')
})

t.test('an Allow rule that bounds the cost lets no call pass whose cost is not known', async t => {
  const agent = await agentWith('others', [rule('Allow', [['llm.costAtMost', 'lte', 5]])])
  t.equal((await call(agent, { model: 'm' })).status, 200)
  const seen = origin.seen.length
  for (const body of [{ model: 'unpriced' }, {}, { model: 'm', max_tokens: 6_000 }]) {
    const refused = await call(agent, body)
    t.equal(refused.headers.get('gateway-error'), 'policy_denied', JSON.stringify(body))
  }
  t.equal(origin.seen.length, seen, 'the upstream saw none of them')
})

t.test('a call that the budget of its rule holds counts there once it is approved', async t => {
  const agent = await agentWith('askers', [
    rule('Allow', [['input.path', 'startsWith', '/a']], { budget: 'asks' }),
    rule('Allow', []),
  ])
  for (const [path, status] of [
    ['/b', 200],
    ['/a', 200],
    ['/a', 202],
    ['/b', 200],
  ] as const) {
    const answer = await call(agent, undefined, other.url + path)
    t.equal(answer.status, status, path)
    const id = answer.headers.get('gateway-hitl-id')
    if (status === 202) t.equal((await manage('POST', `/hitl/${id}/approve`, {})).status, 200)
  }
  await eventually(
    () => spentBy(agent),
    ({ asks }) => asks === 2,
  )
})

t.test('rules see what others spend of a shared budget, two seconds later at most', async t => {
  const brake = [
    rule('Deny', [['budget.used.pool', 'gte', 0.5]], { priority: 1 }),
    rule('Deny', [['budget.remaining.pool', 'lt', 1]], { priority: 1 }),
    rule('Allow', []),
  ]
  const [one, two] = [await agentWith('pool', brake), await agentWith('pool', brake)]
  const ends = (agent: TestAgent, expected: number) =>
    eventually(
      () => call(agent, undefined, `${other.url}/x`),
      ({ status }) => status === expected,
    )
  // While the store is late, nothing is known, and the rules deny.
  await ends(one, 200)
  await ends(two, 200)
  await ends(two, 403)
  t.equal((await spentBy(one))['pool'], 2)
})

t.test('a rule whose budget is not there denies, and says so to the operator', async t => {
  const agent = await agentWith('models', [rule('Allow', [], { budget: 'gone' })])
  const refused = await call(agent, undefined, `${other.url}/x`)
  t.equal(refused.headers.get('gateway-error'), 'policy_denied')
  t.match(await refused.text(), 'what it needs is not there')
})
