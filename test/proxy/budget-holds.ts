/** T77, budgets with `AtLimit: Hitl`: a person decides on a call beyond the limit, and can raise the budget. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { fetchDocumented } from '../fixtures/documented.ts'
import { eventually, startGateway, type TestAgent } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'

const origin = await startOrigin(t, (_req, res) =>
  res
    .writeHead(200, { 'Content-Type': 'application/json' })
    .end('{"model":"m","usage":{"prompt_tokens":1,"completion_tokens":6000}}'),
)
const Host = `127.0.0.1:${origin.port}`
const other = await startOrigin(t)
const gateway = await startGateway(t, {
  alone: 'counts of one gateway are compared',
  config: {
    Metering: { Hosts: [Host] },
    Proxy: { AllowUpgrade: ['127.0.0.1'] },
    // 1 for a thousand tokens that are written.
    Prices: [{ Host, Model: 'm', Output: 1_000 }],
    Budgets: [
      { Name: 'money', Limit: 10, Per: 'Month', Owners: ['money'], AtLimit: 'Hitl' },
      { Name: 'calls', Unit: 'Calls', Limit: 1, Per: 'Month', Owners: ['calls'], AtLimit: 'Hitl' },
      { Name: 'hard', Unit: 'Calls', Limit: 2, Per: 'Month', Owners: ['calls'] },
      { Name: 'team', Of: 'Owner', Unit: 'Calls', Limit: 10, Per: 'Month', Owners: ['crew'] },
      { Name: 'own', Limit: 1, Owners: ['crew'] },
      { Name: 'counted', Per: 'Month' },
    ],
  },
})
const { manage } = gateway
const chat = ({ token }: TestAgent, prefer = 'wait=0') =>
  gateway.proxy(token, `${origin.url}/v1/chat/completions`, {
    method: 'POST',
    body: '{"model":"m","max_tokens":1000}',
    headers: { 'Content-Type': 'application/json', Prefer: prefer },
  })
const get = ({ token }: TestAgent) => gateway.proxy(token, `${other.url}/x`, { headers: { Prefer: 'wait=0' } })
// biome-ignore lint/suspicious/noExplicitAny: whatever the answer is
const json = ({ text }: { readonly text: string }): any => JSON.parse(text)
const idOf = (held: Response) => held.headers.get('gateway-hitl-id') ?? ''
const stateOf = async ({ id }: TestAgent, name: string) =>
  json(await manage('GET', `/agents/${id}/budgets`)).find(({ budget }: { budget: string }) => budget === name)
const approve = (id: string, body: object, token?: string) => manage('POST', `/hitl/${id}/approve`, body, token)
const reviewer = await gateway.agent({ roles: ['reviewer'], ownerId: 'people' })

/** An agent that has spent 12 of its 10. */
async function spender(): Promise<TestAgent> {
  const agent = await gateway.agent({ ownerId: 'money' })
  for (let calls = 0; calls < 2; calls++) t.equal((await chat(agent)).status, 200)
  await eventually(
    () => stateOf(agent, 'money'),
    ({ spent }) => spent === 12,
  )
  return agent
}

t.test('at the limit the call is held, and an approval lets this one pass and counts it', async t => {
  const agent = await spender()
  const seen = origin.seen.length
  const held = await chat(agent)
  t.equal(held.status, 202)
  t.equal(origin.seen.length, seen, 'the upstream saw nothing')
  const { request: shown } = json(await manage('GET', `/hitl/status/${idOf(held)}`, undefined, reviewer.token))
  t.match(shown, {
    reason: 'budget money: 12.00 of 10.00 USD spent',
    budget: { name: 'money', of: 'Agent', holder: agent.id },
  })
  const { request: own } = json(await manage('GET', `/hitl/status/${idOf(held)}`, undefined, agent.token))
  t.match(own, { reason: 'The budget money is used up. A person decides whether the call passes.' })
  t.notOk('budget' in own)
  t.equal((await approve(idOf(held), {}, reviewer.token)).status, 200)
  t.equal(origin.seen.length, seen + 1)
  await eventually(
    () => stateOf(agent, 'money'),
    ({ spent }) => spent === 18,
  )
  t.equal((await chat(agent)).status, 202, 'the next one is held again')
})

t.test('an approval that raises the budget lets the next calls pass without asking', async t => {
  const agent = await spender()
  const held = await chat(agent)
  t.match(await approve(idOf(held), { raise: { amount: 10.01 } }, reviewer.token), {
    status: 400,
    text: /at most 1 times the limit/,
  })
  t.equal((await approve(idOf(held), { raise: { amount: 9 }, comment: 'today' }, reviewer.token)).status, 200)
  // 18 of 19, as soon as the gateway knows of it.
  await eventually(
    () => chat(agent),
    ({ status }) => status === 200,
  )
  t.equal(
    (
      await eventually(
        () => stateOf(agent, 'money'),
        ({ spent }) => spent === 24,
      )
    ).raised,
    9,
  )
  const again = await chat(agent)
  t.equal(again.status, 202)
  t.match(
    await approve(idOf(again), { raise: { amount: 2 } }, reviewer.token),
    { status: 400 },
    'twice the limit is what a reviewer may allow in all',
  )
  const { items } = json(await manage('GET', '/audit?action=budget.raise'))
  t.match(items[0], {
    actor: reviewer.id,
    subject: 'money',
    details: { holder: agent.id, amount: 9, hitlId: idOf(held), comment: 'today' },
  })
})

t.test('people are told when it is used up', async t => {
  const agent = await spender()
  const entries = await eventually(
    async () => json(await manage('GET', '/audit?action=budget.exceeded')).items,
    items => items.some(({ details }: { details: { holder: string } }) => details.holder === agent.id),
  )
  t.match(entries[0], { actor: 'gateway', subject: 'money', details: { spent: 12, limit: 10, unit: 'USD' } })
})

t.test('a call that waits gets its answer after the approval', async t => {
  const agent = await spender()
  const waiting = chat(agent, 'wait=50')
  const [item] = await eventually(
    async () => json(await manage('GET', `/hitl?agentId=${agent.id}`)),
    list => list.length === 1,
  )
  t.equal((await approve(item.id, {}, reviewer.token)).status, 200)
  const answered = await waiting
  t.equal(answered.status, 200)
  t.match(await answered.text(), /completion_tokens/)
})

t.test('nobody is asked for a call that another budget refuses, and an approval does not pass that one', async t => {
  const agent = await gateway.agent({ ownerId: 'calls' })
  t.equal((await get(agent)).status, 200)
  const [first, second] = [await get(agent), await get(agent)]
  t.strictSame([first.status, second.status], [202, 202])
  t.equal((await approve(idOf(first), {})).status, 200)
  t.match(await approve(idOf(second), {}), { status: 429, text: /The budget hard is used up/ })
  t.equal((await get(agent)).headers.get('gateway-error'), 'budget_exceeded')
  t.equal(json(await manage('GET', `/hitl/status/${idOf(second)}`)).status, 'Pending')
})

t.test('what cannot be held is refused', async t => {
  const agent = await gateway.agent({ ownerId: 'calls' })
  await get(agent)
  const socket = connect(gateway.port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write(
    `GET /proxy/${other.url}/x HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${agent.token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
  )
  const [head] = await once(socket, 'data')
  t.match(String(head), /426 .*websocket_not_supported/s)
})

t.test('a raise needs a request that waits at a limit', async t => {
  const policyName = await gateway.policy({ name: 'reviewed', default: 'Hitl' })
  const held = await get(await gateway.agent({ ownerId: 'others', policyName }))
  t.equal(held.status, 202)
  t.match(await approve(idOf(held), { raise: { amount: 1 } }), { status: 409, text: /limit of a budget/ })
})

t.test('an admin raises a budget; with an Idempotency-Key once', async t => {
  const agent = await spender()
  const key = randomUUID()
  const raise = (body: object, name = 'money') =>
    fetchDocumented(`${gateway.url}/budgets/${name}/raises`, {
      method: 'POST',
      headers: {
        ...{ Authorization: `Bearer ${gateway.adminToken}`, 'Content-Type': 'application/json' },
        'Idempotency-Key': key,
      },
      body: JSON.stringify(body),
    })
  const body = { holder: agent.id.toUpperCase(), amount: 7.5, comment: 'for the migration' }
  const both = await Promise.all([raise(body), raise(body)])
  t.strictSame(both.map(({ status }) => status).sort(), [201, 409])
  t.equal((await raise(body)).status, 409)
  t.match(await stateOf(agent, 'money'), { raised: 7.5, limit: 10, spent: 12 })
  await eventually(
    () => chat(agent),
    ({ status }) => status === 200,
  )
  t.equal((await manage('POST', '/budgets/money/raises', { holder: agent.id, amount: 1 }, reviewer.token)).status, 403)
})

t.test('raises that are too much, for nobody, or for oneself are refused, and change nothing', async t => {
  const agent = await gateway.agent({ ownerId: 'money' })
  const member = await gateway.agent({ roles: ['admin'], ownerId: 'crew' })
  const refused: readonly (readonly [string, object, number, string?])[] = [
    ['money', { holder: agent.id, amount: 100.01 }, 400],
    ['money', { holder: agent.id, amount: 0 }, 400],
    ['money', { holder: agent.id, amount: 1e-10 }, 400],
    ['team', { holder: 'crew', amount: 1.5 }, 400],
    ['money', { holder: randomUUID(), amount: 1 }, 400],
    ['money', { holder: reviewer.id, amount: 1 }, 400],
    ['team', { holder: 'nobody', amount: 1 }, 400],
    ['counted', { holder: agent.id, amount: 1 }, 400],
    ['none', { holder: agent.id, amount: 1 }, 404],
    ['own', { holder: member.id, amount: 1 }, 403, member.token],
    ['team', { holder: 'crew', amount: 1 }, 403, member.token],
  ]
  for (const [name, body, status, token] of refused) {
    t.equal((await manage('POST', `/budgets/${name}/raises`, body, token)).status, status, JSON.stringify(body))
  }
  t.match(await stateOf(agent, 'money'), { raised: 0 })
  t.match(await stateOf(member, 'team'), { raised: 0 })
  t.equal((await manage('POST', '/budgets/team/raises', { holder: 'crew', amount: 100 })).status, 201)
  t.match(await stateOf(member, 'team'), { raised: 100, limit: 10 })
})
