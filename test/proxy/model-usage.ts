/** `Metering:Usage`: what the answers of model providers say of their tokens is read, and they pass unchanged. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { startForward } from '../fixtures/forward.ts'
import { eventually, startGateway, type TestGateway } from '../fixtures/gateway.ts'
import { type ModelAnswer, modelAnswers } from '../fixtures/model-answers.ts'
import { startOrigin } from '../fixtures/origin.ts'
import { startReview } from '../fixtures/review.ts'
import { scrape } from '../fixtures/scrape.ts'

const paths: Readonly<Record<ModelAnswer['format'], string>> = {
  openai: '/v1/chat/completions',
  anthropic: '/v1/messages',
  gemini: '/v1beta/models/gemini-3-pro:streamGenerateContent',
  ollama: '/api/chat',
  bedrock: '/model/eu.anthropic.claude-v1%3A0/converse-stream',
  'bedrock-invoke': '/model/eu.anthropic.claude-v1%3A0/invoke-with-response-stream',
  cohere: '/v2/chat',
}

/** What the upstream does next. */
let answer: (res: Parameters<Parameters<typeof startOrigin>[1] & object>[1]) => void
const origin = await startOrigin(t, (_req, res) => answer(res))
const Metering = { Usage: true, Hosts: [`127.0.0.1:${origin.port}`] }
const Prices = [{ Host: `127.0.0.1:${origin.port}`, Model: 'claude-*', Input: 5, Output: 25, CacheRead: 0.5 }]
const gateway = await startGateway(t, { config: { Metering, Prices }, alone: 'counts of one gateway are compared' })
const { token } = await gateway.agent()

const sends = (type: string, bytes: Buffer, more: Readonly<Record<string, string>> = {}): void => {
  answer = res => res.writeHead(200, { 'Content-Type': type, ...more }).end(bytes)
}
const post = (path: string, init: RequestInit = {}) =>
  gateway.proxy(token, origin.url + path, { method: 'POST', body: '{}', ...init })

/** The lines of what was called since. */
async function linesOf({ log }: Pick<TestGateway, 'log'>, count: number, call: () => Promise<unknown>) {
  const before = log.length
  await call()
  return eventually(
    () => log.slice(before).filter(({ message }) => message === 'exchange'),
    lines => lines.length === count,
  )
}

async function counted(): Promise<(name: string) => number> {
  const { values } = scrape((await gateway.manage('GET', '/metrics')).text)
  return name => values.get(`agent_gateway_llm_${name}`) ?? 0
}

const callText = modelAnswers.filter(({ bytes }) => bytes.length < 60_000)

for (const { name, format, type, bytes, expected, isPartial, model } of callText) {
  t.test(`${name}: the agent gets the bytes of the upstream, and the log has the tokens`, async t => {
    sends(type, bytes)
    const [line] = await linesOf(gateway, 1, async () => {
      const answered = await post(paths[format])
      t.ok(bytes.equals(await buffer(answered.body!)))
    })
    const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0, cacheWriteLong = 0 } = expected ?? {}
    const tokens = {
      tokensIn: input + cacheRead + cacheWrite + cacheWriteLong,
      tokensCached: cacheRead,
      tokensOut: output,
    }
    t.match(line, {
      usage: expected === undefined ? 'missing' : isPartial === true ? 'partial' : 'read',
      ...(expected === undefined ? { tokensIn: undefined, tokensOut: undefined } : tokens),
      ...(model === undefined ? {} : { model }),
    })
  })
}

t.test('the model is that of the path when the answer names none', async t => {
  const { type, bytes } = modelAnswers.find(({ name }) => name === 'bedrock converse stream')!
  sends(type, bytes)
  const [line] = await linesOf(gateway, 1, async () => (await post(paths.bedrock)).arrayBuffer())
  t.match(line, { model: 'eu.anthropic.claude-v1:0', tokensIn: 626 })
})

t.test('Bedrock has the usage in the head of an answer to InvokeModel', async t => {
  const counts = { 'X-Amzn-Bedrock-Input-Token-Count': '31', 'X-Amzn-Bedrock-Output-Token-Count': '7' }
  sends('application/json', Buffer.from('{"completion":"hi"}'), counts)
  const [line] = await linesOf(gateway, 1, async () => (await post('/model/amazon.titan/invoke')).text())
  t.match(line, { usage: 'read', tokensIn: 31, tokensOut: 7, model: 'amazon.titan' })
})

const chat = modelAnswers.find(({ name }) => name === 'openai chat json')!
const stream = modelAnswers.find(({ name }) => name === 'anthropic stream')!

t.test('tokens are counted once, each in one type', async t => {
  sends(stream.type, stream.bytes)
  const before = await counted()
  await linesOf(gateway, 1, async () => (await post(paths.anthropic)).text())
  const after = await counted()
  const grown = (name: string) => after(name) - before(name)
  t.equal(grown('usage_total{how="read"}'), 1)
  t.equal(grown('tokens_total{type="input"}'), 12)
  t.equal(grown('tokens_total{type="output"}'), 400)
  t.equal(grown('tokens_total{type="cache_read"}'), 18_432)
  t.equal(grown('tokens_total{type="cache_write"}'), 2_048)
})

const claudeCost = (12 * 5 + 18_432 * 0.5 + 2_048 * 10 + 400 * 25) / 1e6

t.test('a call costs what its tokens cost', async t => {
  sends(stream.type, stream.bytes)
  const before = await counted()
  const [line] = await linesOf(gateway, 1, async () => (await post(paths.anthropic)).text())
  t.equal(line?.cost, claudeCost)
  const after = await counted()
  t.equal((after('cost_total') - before('cost_total')).toFixed(9), claudeCost.toFixed(9))
  t.equal(after('unpriced_total'), before('unpriced_total'))
})

t.test('a model without a price has no cost, and is counted', async t => {
  sends(chat.type, chat.bytes)
  const before = await counted()
  const [line] = await linesOf(gateway, 1, async () => (await post(paths.openai)).text())
  t.equal(line?.cost, undefined)
  t.equal((await counted())('unpriced_total'), before('unpriced_total') + 1)
})

t.test('a call of a model asks for an answer without compression; other calls ask as the agent does', async t => {
  sends(chat.type, chat.bytes)
  const headers = { 'Accept-Encoding': 'gzip' }
  await linesOf(gateway, 4, async () => {
    for (const path of [paths.openai, '/v1/files', '/v1/messages/count_tokens']) await post(path, { headers })
    await gateway.proxy(token, origin.url + paths.openai, { headers })
  })
  const asked = origin.seen.slice(-4).map(seen => seen.headers['accept-encoding'])
  t.strictSame(asked, ['identity', 'gzip', 'gzip', 'gzip'])
})

t.test('an answer that is compressed all the same passes, and shows no usage', async t => {
  sends(chat.type, gzipSync(chat.bytes), { 'Content-Encoding': 'gzip' })
  const [line] = await linesOf(gateway, 1, async () => {
    t.equal(await (await post(paths.openai)).text(), chat.bytes.toString())
  })
  t.match(line, { usage: 'missing', tokensIn: undefined, model: undefined })
})

t.test('a call that failed used nothing', async t => {
  answer = res => res.writeHead(429, { 'Content-Type': 'application/json' }).end('{"error":{}}')
  const before = await counted()
  const [line] = await linesOf(gateway, 1, async () => (await post(paths.openai)).text())
  t.equal(line?.usage, undefined)
  const after = await counted()
  t.equal(after('usage_total{how="missing"}'), before('usage_total{how="missing"}'))
})

/** Calls, and leaves when a part of the answer is there. Resolves when the gateway knows. */
async function leave(): Promise<void> {
  const connections = async () =>
    scrape((await gateway.manage('GET', '/metrics')).text).values.get('agent_gateway_client_connections')
  const before = await connections()
  const path = `/proxy/${origin.url}${paths.anthropic}`
  const headers = { 'Gateway-Authorization': `Bearer ${token}` }
  const call = request({ port: gateway.port, path, method: 'POST', headers, agent: false }).end('{}')
  const [res] = (await once(call, 'response')) as [IncomingMessage]
  await once(res, 'data')
  call.destroy()
  await eventually(connections, now => now === before)
}

const beginning = stream.bytes.subarray(0, 3_000)

t.test('a stream that the agent leaves just before its end has all its usage', async t => {
  const { promise: left, resolve: hasLeft } = Promise.withResolvers<void>()
  answer = res => {
    res.writeHead(200, { 'Content-Type': stream.type }).write(beginning)
    void left.then(() => res.end(stream.bytes.subarray(beginning.length)))
  }
  const [line] = await linesOf(gateway, 1, async () => {
    await leave()
    hasLeft()
  })
  t.match(line, { ending: 'aborted', usage: 'read', tokensIn: 20_492, tokensOut: 400, model: stream.model })
  t.equal(origin.seen.at(-1)?.aborted, false)
})

t.test('a stream that goes on after the agent has left is cancelled, and has the usage until then', async t => {
  const { promise: cancelled, resolve: cancel } = Promise.withResolvers<void>()
  answer = res => {
    res.on('close', cancel)
    res.writeHead(200, { 'Content-Type': stream.type }).write(beginning)
  }
  const [line] = await linesOf(gateway, 1, leave)
  t.match(line, { ending: 'aborted', usage: 'partial', tokensIn: 20_492, tokensCached: 18_432, model: stream.model })
  t.ok((line?.ms ?? 0) >= 1_000, 'a second later')
  await cancelled
})

t.test('a stream that goes on with many bytes is cancelled sooner', async t => {
  const pings = Buffer.alloc(65_536, ': ping\n\n')
  let sent = 0
  answer = res => {
    res.writeHead(200, { 'Content-Type': stream.type }).write(beginning)
    const goOn = () => {
      if (res.writableNeedDrain) return
      res.write(pings)
      sent += pings.length
    }
    const timer = setInterval(goOn, 1)
    res.on('close', () => clearInterval(timer))
  }
  const [line] = await linesOf(gateway, 1, leave)
  t.match(line, { ending: 'aborted', usage: 'partial' })
  t.ok(sent > 262_144)
})

t.test('an agent that loses its rights ends the reading', async t => {
  const { promise: cancelled, resolve: cancel } = Promise.withResolvers<void>()
  answer = res => {
    res.on('close', cancel)
    res.writeHead(200, { 'Content-Type': stream.type }).write(beginning)
  }
  const other = await gateway.agent()
  const [line] = await linesOf(gateway, 1, async () => {
    const left = new AbortController()
    const init = { method: 'POST', body: '{}', signal: left.signal }
    const answered = await gateway.proxy(other.token, origin.url + paths.anthropic, init)
    await answered.body!.getReader().read()
    left.abort()
    await gateway.manage('POST', `/agents/${other.id}/revoke`, { reason: 'test' })
    await cancelled
  })
  t.match(line, { agentId: other.id, usage: 'partial' })
})

t.test('a stream that the upstream breaks off has the usage until then', async t => {
  answer = res => {
    res.writeHead(200, { 'Content-Type': stream.type }).write(stream.bytes.subarray(0, 3_000), () => res.destroy())
  }
  const [line] = await linesOf(gateway, 1, async () => (await post(paths.anthropic)).text().catch(() => {}))
  t.match(line, { ending: 'broken', usage: 'partial', tokensIn: 20_492 })
})

t.test('a virtual host and the forward proxy have the same meter', async t => {
  sends(chat.type, chat.bytes)
  const Hosts = [{ Host: 'models.gateway.test', Upstream: origin.url }]
  const forward = await startForward(t, { config: { Metering, Hosts } })
  const agent = await forward.agent()
  const call = async (port: number, path: string, host: string, field: string) => {
    const headers = { Host: host, [field]: `Bearer ${agent.token}` }
    const [res] = (await once(
      request({ port, path, method: 'POST', headers, agent: false }).end('{}'),
      'response',
    )) as [IncomingMessage]
    t.equal((await buffer(res)).length, chat.bytes.length)
  }
  const lines = await linesOf(forward, 2, async () => {
    await call(forward.port, paths.openai, 'models.gateway.test', 'Authorization')
    await call(forward.forwardPort, origin.url + paths.openai, `127.0.0.1:${origin.port}`, 'Proxy-Authorization')
  })
  for (const line of lines) t.match(line, { usage: 'read', tokensIn: 1_204, tokensOut: 400, model: chat.model })
  t.ok(lines.some(({ road }) => road === 'forward'))
})

t.test('an approved request is metered, and has a line of its own', async t => {
  sends(stream.type, stream.bytes)
  const review = await startReview(t, { config: { Metering, Prices }, alone: 'counts of one gateway are compared' })
  const headers = { 'Accept-Encoding': 'gzip', Prefer: 'wait=0' }
  const held = await review.proxy(review.bot.token, origin.url + paths.anthropic, {
    method: 'POST',
    body: '{}',
    headers,
  })
  const hitlId = held.headers.get('gateway-hitl-id') as string
  await (await review.approve(hitlId)).text()
  const [line] = await eventually(
    () => review.log.filter(({ message }) => message === 'usage of an approved request'),
    lines => lines.length > 0,
  )
  t.match(line, { hitlId, agentId: review.bot.id, usage: 'read', tokensIn: 20_492, tokensOut: 400, cost: claudeCost })
  t.equal(origin.seen.at(-1)?.headers['accept-encoding'], 'identity')
  const { values } = scrape((await review.manage('GET', '/metrics')).text)
  t.equal(values.get('agent_gateway_llm_usage_total{how="read"}'), 1)
})

t.test('other hosts are not believed, and without the setting nothing is read', async t => {
  sends(chat.type, chat.bytes)
  for (const config of [{ Metering: { Usage: true } }, { Metering: { ...Metering, Usage: false } }]) {
    const other = await startGateway(t, { config })
    const agent = await other.agent()
    const [line] = await linesOf(other, 1, async () => {
      const headers = { 'Accept-Encoding': 'gzip' }
      await other.proxy(agent.token, origin.url + paths.openai, { method: 'POST', body: '{}', headers })
    })
    t.strictSame([line?.usage, line?.model, line?.tokensIn], [undefined, undefined, undefined])
    t.equal(origin.seen.at(-1)?.headers['accept-encoding'], 'gzip')
  }
})
