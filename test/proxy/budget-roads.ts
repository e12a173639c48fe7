/** T77, budgets: a call counts once on every road, and leaves nothing reserved. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { absolute, openSecure, startForwardReview } from '../fixtures/forward.ts'
import { http2Setup, openHttp2 } from '../fixtures/forward-http2.ts'
import { eventually, type TestAgent } from '../fixtures/gateway.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { startHttp2 } from '../fixtures/origin-http2.ts'
import { openRaw } from '../fixtures/raw.ts'

const path = '/v1/chat/completions'
const json = 'application/json'
/** Calls of models wait for their verdict unless they say so. */
const unwaited = { 'Content-Type': json, Prefer: 'wait=0' }
/** Uses what the user says, or else all that the request allows: tokens cost a thousandth each. */
const usageOf = (body: string) => {
  const { max_tokens: most = 0, user: tokens = most } = body === '' ? {} : JSON.parse(body)
  return JSON.stringify({ model: 'm', usage: { prompt_tokens: 0, completion_tokens: Number(tokens) } })
}
const events = 4
/** Answers wait for it. */
let mayAnswer = Promise.resolve()

const origin = await startOrigin(t, async (req, res, seen) => {
  await once(req, 'end')
  await mayAnswer
  const body = String(seen.body)
  if (!body.includes('"stream":true')) return void res.writeHead(200, { 'Content-Type': json }).end(usageOf(body))
  res.writeHead(200, { 'Content-Type': 'text/event-stream' })
  for (let n = 0; n < events; n++) {
    res.write(`data: {"choices":[],"n":${n}}\n\n`)
    await new Promise(resolve => setImmediate(resolve))
  }
  res.end(`data: ${usageOf(body)}\n\ndata: [DONE]\n\n`)
})
const speech = await startOrigin(t)
const secure = await startHttp2(t, (stream, seen) => {
  stream.on('end', () => {
    stream.respond({ ':status': 200, 'content-type': json })
    stream.end(usageOf(seen.body))
  })
})
const to = `idp.test:${new URL(secure.url).port}`
const Hosts = [`127.0.0.1:${origin.port}`, to, `127.0.0.1:${speech.port}`]

const { lookup, config } = http2Setup({
  Metering: { Hosts, MissingUsage: 'Refuse' },
  Hosts: [{ Host: 'models.gateway.test', Upstream: origin.url }],
  Proxy: { AllowUpgrade: ['127.0.0.1'] },
  Prices: [
    { Host: Hosts[2], Model: '*', PerCall: 6 },
    { Model: 'm', Input: 0, Output: 1_000 },
  ],
  Budgets: [
    { Name: 'exact', Limit: 13, Per: 'Month', Exact: true, Owners: ['exact'] },
    { Name: 'calls', Unit: 'Calls', Limit: 1, Per: 'Month', Owners: ['calls'] },
  ],
})
const gateway = await startForwardReview(t, { origin, lookup, config })

const newAgent = (more: object = {}) => gateway.agent({ ownerId: 'exact', ...more })
const bodyOf = (dollars: number, more: object = {}) =>
  JSON.stringify({ model: 'm', max_tokens: dollars * 1_000, ...more })
const post = ({ token }: TestAgent, body: string, url = origin.url + path, more: RequestInit = {}) =>
  gateway.proxy(token, url, { method: 'POST', body, ...more, headers: { 'Content-Type': json, ...more.headers } })
const codeOf = (answered: Response) => answered.headers.get('gateway-error')
const settled = () =>
  eventually(
    () => gateway.gateway.inFlight(),
    count => count === 0,
  )

/** 12 of 13 are spent: 1 more fits when nothing is reserved, and nothing fits after that. */
async function isTwelve(t: Test, agent: TestAgent) {
  await settled()
  t.equal((await post(agent, bodyOf(1))).status, 200, 'no more than 12 is spent or reserved')
  t.equal(codeOf(await post(agent, bodyOf(1))), 'budget_exceeded', 'no less is spent')
}

/** Each makes a call that costs 6, and resolves with its status. */
const roads: Readonly<Record<string, (t: Test, agent: TestAgent) => Promise<number | undefined>>> = {
  '/proxy': async (_t, agent) => (await post(agent, bodyOf(6))).status,
  'the forward proxy': async (t, { token }) => {
    const fields = `Content-Type: ${json}\r\n`
    const authorization = `Bearer ${token}`
    const asked = { method: 'POST', path, authorization, fields, body: bodyOf(6) }
    return statusOf(await gateway.exchange(t, absolute(origin, asked)))
  },
  'a tunnel': async (t, { token }) => {
    const client = await openSecure(t, gateway, { to, authorization: `Bearer ${token}` })
    const body = bodyOf(6)
    const head = `POST ${path} HTTP/1.1\r\nHost: ${to}\r\nContent-Type: ${json}\r\n`
    client.write(`${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`)
    return statusOf(await client.closed())
  },
  'HTTP/2 in a tunnel': async (t, { token }) => {
    const client = await openHttp2(t, gateway, { to, authorization: `Bearer ${token}` })
    const { status } = await client.send({ ':method': 'POST', ':path': path, 'content-type': json }, bodyOf(6))
    client.session.destroy()
    return status
  },
  'a virtual host': async (t, { token }) => {
    const client = await openRaw(t, gateway.port)
    const body = bodyOf(6)
    const head = `POST ${path} HTTP/1.1\r\nHost: models.gateway.test\r\nAuthorization: Bearer ${token}\r\nContent-Type: ${json}\r\n`
    client.write(`${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`)
    return statusOf(await client.closed())
  },
  'a price for each call': async (_t, agent) =>
    (await post(agent, '{"input":"hello"}', `${speech.url}/v1/audio/speech`)).status,
  'a stream': async (_t, agent) => {
    const answered = await post(agent, bodyOf(6, { stream: true, stream_options: { include_usage: true } }))
    await answered.text()
    return answered.status
  },
}

const statusOf = (answer: string) => Number(answer.split(' ')[1])

for (const [road, call] of Object.entries(roads)) {
  t.test(`a call counts once: ${road}`, async t => {
    const agent = await newAgent()
    for (let calls = 0; calls < 2; calls++) t.equal(await call(t, agent), 200)
    await isTwelve(t, agent)
    t.equal(await call(t, agent), 429, 'refused on this road, too')
    const lines = await eventually(
      () => gateway.log.filter(({ agentId, message }) => agentId === agent.id && message === 'exchange'),
      ({ length }) => length >= 5,
    )
    t.strictSame([...new Set(lines.map(({ budget }) => budget))], ['exact'], 'each line names the budget')
  })
}

t.test('an agent that leaves a stream at any event is charged with what its end says', async t => {
  for (let leaves = 0; leaves <= events; leaves++) {
    const agent = await newAgent()
    for (let calls = 0; calls < 2; calls++) {
      const left = new AbortController()
      const body = bodyOf(6, { stream: true, stream_options: { include_usage: true } })
      const answered = await post(agent, body, undefined, { signal: left.signal })
      const reader = answered.body!.getReader()
      for (let seen = ''; !seen.includes(`"n":${leaves - 1}`) && leaves > 0; ) {
        seen += Buffer.from((await reader.read()).value ?? []).toString()
      }
      left.abort()
    }
    await isTwelve(t, agent)
  }
})

for (const stream of [false, true]) {
  const what = stream ? 'a stream' : 'a document'
  t.test(
    `T77 a client that leaves before ${what} begins is charged with what its end says, not with the most`,
    async t => {
      const agent = await newAgent()
      const { promise, resolve } = Promise.withResolvers<void>()
      mayAnswer = promise
      const before = origin.seen.length
      const left = new AbortController()
      const more = stream ? { stream, stream_options: { include_usage: true } } : {}
      const call = post(agent, bodyOf(13, { user: '12000', ...more }), undefined, { signal: left.signal })
      await eventually(
        () => origin.seen.length,
        count => count > before,
      )
      left.abort()
      await t.rejects(call)
      t.equal(codeOf(await post(agent, bodyOf(1))), 'budget_reserved', 'it is under way')
      t.equal(gateway.gateway.inFlight(), 1)
      resolve()
      await isTwelve(t, agent)
    },
  )
}

t.test('an approved call counts when it is sent, and not while it waits', async t => {
  const agent = await newAgent({ policyName: 'careful' })
  const init = { bot: agent, body: bodyOf(6), headers: unwaited }
  const ids = await Promise.all([1, 2, 3].map(n => gateway.hold(`${path}?${n}`, init)))
  const outcomes = []
  for (const id of ids) {
    const answered = await gateway.approve(id)
    const { code = '' } = (await answered.json()) as { code?: string }
    outcomes.push(`${answered.status} ${code}`)
  }
  t.strictSame(outcomes, ['200 ', '200 ', '429 budget_exceeded'], 'nothing is reserved any more')
  const lines = await eventually(
    () => gateway.log.filter(({ message, agentId }) => message.endsWith('approved request') && agentId === agent.id),
    ({ length }) => length >= 2,
  )
  t.match(
    lines,
    ids.slice(0, 2).map(hitlId => ({ hitlId, budget: 'exact', usage: 'read', tokensOut: 6_000 })),
  )
})

t.test('a grant is not used by a call that the budget refuses', async t => {
  const agent = await newAgent({ policyName: 'careful' })
  const id = await gateway.hold(path, { bot: agent, body: bodyOf(6), headers: unwaited })
  const approved = await gateway.approve(id, { grant: { minutes: 5, maxUses: 5 } })
  t.equal(approved.status, 200)
  await approved.text()
  t.equal((await post(agent, bodyOf(6))).status, 200, 'the grant lets it pass')
  for (let calls = 0; calls < 2; calls++) t.equal(codeOf(await post(agent, bodyOf(6))), 'budget_exceeded')
  const grants = JSON.parse((await gateway.manage('GET', '/hitl/grants')).text) as { agentId: string; uses: number }[]
  t.strictSame(
    grants.filter(({ agentId }) => agentId === agent.id).map(({ uses }) => uses),
    [1],
  )
  t.equal((await post(agent, bodyOf(1))).status, 200, 'nothing is reserved, and the grant is still there')
  const other = await post(agent, bodyOf(1), `${origin.url}/v1/responses`, { headers: unwaited })
  t.equal(other.status, 202, 'no grant covers it: it is held, although the budget is nearly used up')
})

t.test('a stream that does not ask for its usage is refused before it is sent', async t => {
  const agent = await newAgent()
  const seen = origin.seen.length
  const refused = await post(agent, bodyOf(6, { stream: true }))
  t.equal(refused.status, 400)
  t.equal(codeOf(refused), 'usage_not_asked')
  t.equal(origin.seen.length, seen)
})

t.test('a WebSocket is a call', async t => {
  const { token } = await gateway.agent({ ownerId: 'calls' })
  const answers = []
  for (let calls = 0; calls < 2; calls++) {
    const socket = connect(gateway.port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.write(
      `GET /proxy/${speech.url}/socket HTTP/1.1\r\nHost: x\r\nGateway-Authorization: Bearer ${token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    )
    answers.push(String(await new Promise(resolve => socket.once('data', resolve))).split('\r\n', 1)[0])
  }
  t.match(answers, [/^HTTP\/1.1 (?:101|200)/, /^HTTP\/1.1 429/])
})
