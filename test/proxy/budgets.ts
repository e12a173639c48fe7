/** T77, budgets: a call is reserved before it is sent, and charged with what its answer says. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { eventually, startGateway, type TestAgent } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { testdir } from '../fixtures/testdir.ts'

type Answer = Parameters<Parameters<typeof startOrigin>[1] & object>[1]

const usage = (input: number, output: number) =>
  JSON.stringify({ model: 'm', usage: { prompt_tokens: input, completion_tokens: output } })
const answersWith = (text: string, status = 200) => {
  answer = res => res.writeHead(status, { 'Content-Type': 'application/json' }).end(text)
}
/** What the model server does next. */
let answer: (res: Answer) => void
const origin = await startOrigin(t, (_req, res) => answer(res))
const Host = `127.0.0.1:${origin.port}`
const other = await startOrigin(t)

const config = {
  Metering: { Hosts: [Host] },
  Proxy: { AllowUpgrade: ['127.0.0.1'] },
  // 1 for a thousand tokens that are written.
  Prices: [
    { Host, Model: 'm', Input: 0, Output: 1_000 },
    { Host, Model: 'dear', Input: 0, Output: 3_000 },
    { Host, Model: 'free' },
  ],
  Budgets: [
    { Name: 'money', Unit: 'Money', Limit: 10, Per: 'Month', Hosts: [Host], Owners: ['money'] },
    { Name: 'exact', Unit: 'Money', Limit: 10, Per: 'Month', Owners: ['exact'], Exact: true },
    { Name: 'tokens', Unit: 'Tokens', Limit: 1_000, Owners: ['tokens'] },
    { Name: 'calls', Unit: 'Calls', Limit: 3, Owners: ['calls'] },
    { Name: 'owners', Of: 'Owner', Unit: 'Calls', Limit: 2, Owners: ['shared'] },
    { Name: 'warns', Unit: 'Calls', Limit: 1, Owners: ['warns'], AtLimit: 'Allow' },
    { Name: 'small-model', Unit: 'Calls', Limit: 1, Owners: ['models'], Models: ['free*'] },
  ],
}
const gateway = await startGateway(t, { config, alone: 'counts of one gateway are compared' })
const agentOf = (ownerId: string): Promise<TestAgent> => gateway.agent({ ownerId })
const chat = ({ token }: TestAgent, body: unknown = { model: 'm', max_tokens: 1_000 }, path = '/v1/chat/completions') =>
  gateway.proxy(token, origin.url + path, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'Content-Type': 'application/json' },
  })
const spentOf = async ({ id }: TestAgent) => JSON.parse((await gateway.manage('GET', `/agents/${id}/budgets`)).text)
const code = (answered: Response) => answered.headers.get('gateway-error')

/** Holds answers until all are there. */
function holds() {
  const waiting: Answer[] = []
  answer = res => void waiting.push(res)
  return {
    waiting,
    all: (text: string) => {
      for (const res of waiting.splice(0)) res.writeHead(200, { 'Content-Type': 'application/json' }).end(text)
    },
  }
}

t.test('calls pass until the money is spent, and the refusal says how much and until when', async t => {
  const agent = await agentOf('money')
  answersWith(usage(100, 2_500))
  for (let n = 0; n < 4; n++) t.equal((await chat(agent)).status, 200)
  const seen = origin.seen.length
  const refused = await chat(agent)
  t.equal(refused.status, 429)
  t.equal(code(refused), 'budget_exceeded')
  t.equal(refused.headers.get('x-should-retry'), 'false')
  t.ok(Number(refused.headers.get('retry-after')) > 0)
  t.match(refused.headers.get('ratelimit-policy'), /^"money";q=10000000;w=\d+;qu="USD-millionths"$/)
  t.match(refused.headers.get('ratelimit'), /^"money";r=0;t=\d+$/)
  t.match(await refused.text(), /money is used up: 10\.00 of 10\.00 USD/)
  t.equal(origin.seen.length, seen, 'the upstream saw nothing')
})

t.test('answers say what is left, unless the upstream says how much of its own is', async t => {
  const agent = await agentOf('money')
  answersWith(usage(0, 2_000))
  const fieldsOf = ({ headers }: Response) => [headers.get('ratelimit-policy'), headers.get('ratelimit')]
  // The next call of 1 reserves a half.
  for (const left of [9_500_000, 7_500_000]) {
    const [policy, rest] = fieldsOf(await chat(agent))
    t.match(policy, /^"money";q=10000000;w=\d+;qu="USD-millionths"$/)
    t.match(rest, new RegExp(`^"money";r=${left};t=\\d+$`))
  }
  const own = { RateLimit: '"models";r=5;t=1', 'RateLimit-Policy': '"models";q=9' }
  answer = res => res.writeHead(200, { 'Content-Type': 'application/json', ...own }).end(usage(0, 1))
  t.strictSame(fieldsOf(await chat(agent)), Object.values(own).reverse())
  answersWith('{}')
  t.strictSame(fieldsOf(await gateway.proxy(agent.token, `${origin.url}/v1/models`)), [null, null], 'not metered')
})

t.test('calls at once reserve half of the most that they can cost: the rest is refused', async t => {
  const agent = await agentOf('money')
  const held = holds()
  // Each can cost 8, and reserves 4.
  const calls = Array.from({ length: 6 }, () => chat(agent, { model: 'm', max_tokens: 8_000 }))
  const first = await Promise.race(
    calls.map(async call => ((await call).status === 429 ? call : new Promise(() => {}))),
  )
  t.equal(code(first as Response), 'budget_reserved')
  t.equal((first as Response).headers.get('retry-after'), '2')
  await eventually(
    () => held.waiting.length,
    count => count === 3,
  )
  held.all(usage(0, 1_000))
  const ended = await Promise.all(calls)
  t.strictSame(ended.map(({ status }) => status).sort(), [200, 200, 200, 429, 429, 429])
  answersWith(usage(0, 1_000))
  t.equal((await chat(agent, { model: 'm', max_tokens: 8_000 })).status, 200, 'what was not used is free again')
})

t.test('with Exact a call passes only when all of its highest cost fits', async t => {
  const agent = await agentOf('exact')
  answersWith(usage(0, 4_000))
  t.equal((await chat(agent, { model: 'm', max_tokens: 9_000 })).status, 200)
  t.equal(code(await chat(agent, { model: 'm', max_tokens: 6_500 })), 'budget_exceeded')
  t.equal((await chat(agent, { model: 'm', max_tokens: 5_900 })).status, 200)
})

t.test('T77 the dearest of the models that may answer is reserved, and the one that answered is charged', async t => {
  const agent = await agentOf('exact')
  answersWith(usage(0, 4_000))
  const fallbacks = { model: 'm', models: ['dear'] }
  const seen = origin.seen.length
  t.equal(code(await chat(agent, { ...fallbacks, max_tokens: 4_000 })), 'budget_exceeded', 'it could cost 12')
  const unknown = await chat(agent, { model: 'm', fallbacks: [{ model: 'unheard-of' }], max_tokens: 10 })
  t.match([code(unknown), await unknown.text()], ['price_unknown', /unheard-of/])
  t.equal(origin.seen.length, seen, 'the upstream saw nothing')
  t.equal((await chat(agent, { ...fallbacks, max_tokens: 3_000 })).status, 200)
  t.match(await spentOf(agent), [{ spent: 4 }])
  const small = await agentOf('models')
  for (const status of [200, 429]) t.equal((await chat(small, { model: 'm', models: ['free'] })).status, status)
})

t.test('a budget of tokens counts what is read and written', async t => {
  const agent = await agentOf('tokens')
  answersWith(usage(300, 300))
  for (const status of [200, 200, 429]) t.equal((await chat(agent, { model: 'any', max_tokens: 10 })).status, status)
})

t.test('where no budget counts money the log tells no amount of it', async t => {
  const agent = await agentOf('tokens')
  answersWith('{}')
  t.equal((await chat(agent, { model: 'any', max_tokens: 10 })).status, 200)
  const lines = await eventually(
    async () => gateway.log.filter(line => line['agentId'] === agent.id && line['status'] === 200),
    ({ length }) => length === 1,
  )
  t.match(lines, [{ budget: 'tokens', charged: undefined }])
})

t.test('a budget of calls counts those of any host that were sent', async t => {
  const agent = await agentOf('calls')
  const get = () => gateway.proxy(agent.token, `${other.url}/x`)
  answersWith('{}', 500)
  t.equal((await chat(agent)).status, 500)
  t.equal((await gateway.proxy(agent.token, 'http://127.0.0.1:1/closed')).status, 502)
  for (const status of [200, 200, 429]) t.equal((await get()).status, status)
})

t.test('agents of one owner share a budget of owners, and get no amounts of it', async t => {
  const [one, two] = [await agentOf('shared'), await agentOf('shared')]
  const get = ({ token }: TestAgent) => gateway.proxy(token, `${other.url}/x`)
  t.equal((await get(one)).status, 200)
  t.equal((await get(two)).status, 200)
  const refused = await get(one)
  t.equal(code(refused), 'budget_exceeded')
  t.equal(refused.headers.get('ratelimit'), null)
  t.notMatch(await refused.text(), / of 2/)
})

t.test('AtLimit Allow lets calls pass', async t => {
  const agent = await agentOf('warns')
  for (let n = 0; n < 3; n++) t.equal((await gateway.proxy(agent.token, `${other.url}/x`)).status, 200)
})

t.test('a budget of some models leaves the others alone', async t => {
  const agent = await agentOf('models')
  answersWith(usage(1, 1))
  const asked = ['free-1', 'm', 'free-2', 'm']
  const ended = []
  for (const model of asked) ended.push((await chat(agent, { model })).status)
  t.strictSame(ended, [200, 200, 429, 200])
})

t.test('T77 a host of the agent is no provider: what it says of a use costs nothing', async t => {
  const liar = await startOrigin(t, (_req, res) =>
    res.writeHead(200, { 'Content-Type': 'application/json' }).end(usage(1e6, 1e6)),
  )
  const agent = await agentOf('tokens')
  const init = { method: 'POST', body: '{"model":"m"}' }
  const call = () => gateway.proxy(agent.token, `${liar.url}/v1/chat/completions`, init)
  for (let n = 0; n < 3; n++) t.equal((await call()).status, 200)
  t.match(await spentOf(agent), [{ spent: 0, calls: 0 }])
})

t.test('T77 the price is that of the model that answered', async t => {
  const agent = await agentOf('money')
  answersWith(usage(0, 2_000))
  t.equal((await chat(agent, { model: 'free', max_tokens: 5 })).status, 200)
  t.match(await spentOf(agent), [{ spent: 2 }])
})

t.test('a failed call of a model costs nothing', async t => {
  const agent = await agentOf('money')
  answersWith('{"error":{}}', 500)
  for (let n = 0; n < 3; n++) t.equal((await chat(agent, { model: 'm', max_tokens: 20_000 })).status, 500)
})

t.test(
  'a stream without usage costs at least half of the most; documents and background calls cost all of it',
  async t => {
    for (const [more, passing] of [
      [{ stream: true }, 2],
      [{}, 1],
      [{ background: true }, 1],
    ] as const) {
      const agent = await agentOf('money')
      answersWith('{"model":"m"}')
      for (let n = 0; n < passing; n++)
        t.equal((await chat(agent, { model: 'm', max_tokens: 12_000, ...more })).status, 200)
      t.equal(code(await chat(agent)), 'budget_exceeded')
    }
  },
)

t.test('T77 a call that names no model counts in the budgets of any: a stored prompt can name one', async t => {
  const agent = await agentOf('models')
  answersWith('{}')
  const call = () => chat(agent, { max_tokens: 5 })
  t.equal((await call()).status, 200)
  t.equal(code(await call()), 'budget_exceeded')
})

const unreadable: readonly (readonly [string, string, string])[] = [
  ['a body that is no JSON', 'model=m', '/v1/chat/completions'],
  ['a name that is there twice', '{"model":"m","max_tokens":1,"max_tokens":90000}', '/v1/chat/completions'],
  ['a name in another letter case', '{"model":"m","max_tokens":1,"Max_Tokens":90000}', '/v1/chat/completions'],
  ['a number as text', '{"model":"m","max_tokens":"9"}', '/v1/chat/completions'],
  ['metadata that hides the usage', JSON.stringify({ model: 'm', metadata: 'x'.repeat(2_049) }), '/v1/responses'],
  ['a part of an answer of Gemini', '{}', '/v1beta/models/m:generateContent?$fields=candidates'],
  ['an answer of Gemini in another form', '{}', '/v1beta/models/m:generateContent?alt=proto'],
  ['a batch', '{}', '/v1/batches'],
  ['speech', '{"model":"m"}', '/v1/audio/speech'],
]

for (const [what, body, path] of unreadable) {
  t.test(`${what} cannot be metered under a budget of money, and passes without one`, async t => {
    answersWith(usage(1, 1))
    const [agent, free] = [await agentOf('money'), await agentOf('nobody')]
    const seen = origin.seen.length
    const refused = await chat(agent, body, path)
    t.equal(refused.status, 403)
    t.equal(code(refused), 'call_unmetered')
    t.equal(origin.seen.length, seen, 'the upstream saw nothing')
    t.equal((await chat(free, body, path)).status, 200)
  })
}

t.test('paths that cost nothing pass a budget that is used up', async t => {
  const agent = await agentOf('money')
  answersWith(usage(0, 20_000))
  await chat(agent)
  t.equal(code(await chat(agent)), 'budget_exceeded')
  for (const path of ['/v1/moderations', '/v1/files', '/v1/messages/count_tokens', '/v1/responses/r1/cancel']) {
    t.equal((await chat(agent, '{}', path)).status, 200, path)
  }
  t.equal((await gateway.proxy(agent.token, `${origin.url}/v1/models`)).status, 200)
})

t.test('a model without a price is refused by its name', async t => {
  const agent = await agentOf('money')
  const refused = await chat(agent, { model: 'unheard-of' })
  t.equal(code(refused), 'price_unknown')
  t.match(await refused.text(), /unheard-of/)
})

t.test('T77 a stream that is cut off while the model thinks is charged by its time', async t => {
  const agent = await agentOf('money')
  const start = JSON.stringify({
    type: 'message_start',
    message: { model: 'm', usage: { input_tokens: 1, output_tokens: 1 } },
  })
  answer = res => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(`event: message_start\ndata: ${start}\n\n`)
    setTimeout(() => res.destroy(), 100)
  }
  const answered = await chat(agent, { model: 'm', max_tokens: 9_000, stream: true }, '/v1/messages')
  await t.rejects(answered.text())
  const [{ spent }] = await eventually(
    () => spentOf(agent),
    ([budget]) => budget.spent > 0,
  )
  t.ok(spent >= 0.09 && spent <= 9, `${spent} for 90 ms or more`)
})

t.test('a client that leaves a stream is charged with an estimate', async t => {
  const agent = await agentOf('money')
  // 4,000 tokens of 60 bytes.
  const bytes = 240_000
  answer = res => void res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('x'.repeat(bytes))
  for (let calls = 0; calls < 3; calls++) {
    const answered = await chat(agent, { model: 'm', max_tokens: 8_000, stream: true })
    t.equal(answered.status, 200)
    const reader = answered.body!.getReader()
    for (let read = 0; read < bytes; ) read += (await reader.read()).value?.length ?? bytes
    await reader.cancel()
    await eventually(
      () => gateway.gateway.inFlight(),
      count => count === 0,
    )
  }
  t.equal(code(await chat(agent)), 'budget_exceeded')
  const charged = gateway.log.flatMap(line => (line['agentId'] === agent.id ? [Number(line['charged'] ?? 0)] : []))
  const [{ spent }] = await spentOf(agent)
  t.equal(
    charged.reduce((sum, one) => sum + one, 0),
    spent,
    'the lines of the calls have the estimates',
  )
})

t.test('a WebSocket to a provider cannot be metered', async t => {
  const agent = await agentOf('money')
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(
    `GET /proxy/${origin.url}/v1/realtime HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${agent.token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
  )
  const [head] = await once(socket, 'data')
  t.match(String(head), /403 .*call_unmetered/s)
  socket.destroy()
})

t.test('what was spent is spent after a restart', async t => {
  const folder = testdir(t)
  const before = await startGateway(t, { config, alone: 'it is started again', directory: folder })
  const agent = await before.agent({ ownerId: 'money' })
  answersWith(usage(0, 9_000))
  const call = (to: typeof before) =>
    to.proxy(agent.token, `${origin.url}/v1/chat/completions`, {
      method: 'POST',
      body: '{"model":"m","max_tokens":100}',
    })
  t.equal((await call(before)).status, 200)
  await before.close()
  const after = await startGateway(t, { config, alone: 'it is started again', directory: folder })
  t.equal((await call(after)).status, 200)
  t.equal(code(await call(after)), 'budget_exceeded')
})
