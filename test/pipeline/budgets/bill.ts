/** What a call costs when its answer does not show it. Threat T77. */
import t from 'tap'
import { parseTarget } from '../../../src/base/target.ts'
import { calledModel } from '../../../src/llm/formats.ts'
import { readModelRequest } from '../../../src/llm/model-request.ts'
import type { PricedCall } from '../../../src/pipeline/answers/pricing.ts'
import {
  type BillParts,
  boundedModel,
  finalCost,
  kindOf,
  maxCostOf,
  unpricedModel,
} from '../../../src/pipeline/budgets/bill.ts'
import { createClock } from '../../fixtures/clock.ts'

const parts: BillParts = {
  config: { Metering: { MissingUsage: 'Estimate' } as BillParts['config']['Metering'] },
  clock: createClock(),
  prices: { costOf: () => undefined, chargeOf: () => undefined } as unknown as BillParts['prices'],
  providerAt: () => undefined,
}

/** A call that may write 1,000 tokens. */
function modelOf(path: string, streams: boolean, isStrict = false, asked: object = { model: 'm' }) {
  const called = calledModel(path)
  const target = parseTarget(`https://models.example${path}`)
  if (called === undefined || typeof target === 'string') throw new Error(path)
  const body = Buffer.from(JSON.stringify({ ...asked, max_tokens: 1_000, stream: streams }))
  const request = readModelRequest(called, body)
  if (request === undefined) throw new Error('the body is not read')
  // The input is left out, so that the output shows.
  return boundedModel({ provider: 'openai', target, called, request, bodyBytes: 0 }, isStrict)
}

t.test('T77 a call costs at most what the dearest of the models would that may answer', async t => {
  const perToken: Readonly<Record<string, number>> = { cheap: 1, dear: 5 }
  const priceOf = ({ model = '', tokens }: PricedCall) =>
    perToken[model] === undefined ? undefined : perToken[model] * tokens.output
  const priced = { ...parts, prices: { costOf: priceOf, chargeOf: priceOf } }
  const callOf = (body: object) => modelOf('/v1/chat/completions', false, false, body)
  t.equal(maxCostOf(callOf({ model: 'cheap', models: ['dear', 'cheap'] }), priced), 5_000)
  const unknown = callOf({ model: 'cheap', models: ['dear', 'new'] })
  t.strictSame([maxCostOf(unknown, priced), unpricedModel(unknown, priced)], [undefined, 'new'])
  const tokens = { input: 0, output: 10, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 }
  const costOf = (model: string | undefined) => {
    const end = {
      status: 200,
      bytes: 600,
      isWhole: true,
      thoughtMs: 0,
      usage: { how: 'read', tokens, model, cost: undefined } as const,
    }
    return finalCost(callOf({ model: 'cheap', models: ['dear'] }), { tokens: 1_000, money: 5_000 }, end, priced).money
  }
  t.strictSame(['cheap', 'dear', 'new', undefined].map(costOf), [10, 50, 50, 50], 'the model of the answer is charged')
})

/** Tokens that the call costs when its answer has 600 bytes and no usage. */
function tokensOf(path: string, streams: boolean, isWhole: boolean, isStrict = false, thoughtMs = 0): number {
  const end = { status: 200, usage: undefined, bytes: 600, isWhole, thoughtMs }
  return finalCost(modelOf(path, streams, isStrict), { tokens: 1_000, money: undefined }, end, parts).tokens
}

t.test('T77 a stream of OpenAI costs at least half of the most, also when it is left', async t => {
  t.equal(tokensOf('/v1/chat/completions', true, true), 500)
  t.equal(tokensOf('/v1/chat/completions', true, false), 500)
})

t.test('a stream of Anthropic that is left costs what came of it', async t => {
  t.equal(tokensOf('/v1/messages', true, false), 30)
  t.equal(tokensOf('/v1/messages', true, true), 500)
})

t.test(
  'T77 where a model may have thought without showing it, the time of an answer that is cut off counts',
  async t => {
    const paths = ['/v1/messages', '/model/m/converse-stream', '/model/m/invoke-with-response-stream']
    for (const path of paths) {
      const costAfter = (thoughtMs: number) => tokensOf(path, true, false, false, thoughtMs)
      t.strictSame([10, 400, 5_000].map(costAfter), [30, 400, 1_000], path)
    }
    t.equal(tokensOf('/v1/messages', true, true, false, 700), 500, 'one that is whole')
    t.equal(tokensOf('/api/chat', true, false, false, 700), 10, 'Ollama shows all')
  },
)

t.test('T77 a whole document without usage costs the most', async t => {
  t.equal(tokensOf('/v1/chat/completions', false, true), 1_000)
})

t.test('T77 under an exact budget every answer without usage costs the most', async t => {
  for (const isWhole of [true, false]) t.equal(tokensOf('/v1/messages', true, isWhole, true), 1_000)
})

t.test(
  'T77 under an exact budget the highest cost counts what is read as written to a cache, where that costs more',
  async t => {
    const prices = {
      chargeOf: ({ tokens }: PricedCall) => tokens.input + tokens.cacheWrite + 2 * tokens.cacheWriteLong,
    }
    const costOf = (isStrict: boolean) =>
      maxCostOf(modelOf('/v1/messages', false, isStrict), { ...parts, prices: { ...parts.prices, ...prices } })
    t.strictSame([costOf(false), costOf(true)], [0, 2 * 2_048])
  },
)

t.test('T77 a GET that asks for another method is not free', async t => {
  const kindOfGet = (path: string, rawHeaders: readonly string[] = [], method = 'GET') => {
    const target = parseTarget(`https://models.example${path}`)
    if (typeof target === 'string') throw new Error(path)
    return kindOf({ method, target, rawHeaders }, false, parts)
  }
  t.equal(kindOfGet('/v1/models'), 'free')
  for (const name of ['X-HTTP-Method-Override', 'x-http-method', 'X-Method-Override'])
    t.equal(kindOfGet('/v1/models/m:generateContent', ['Accept', '*/*', name, 'POST']), 'other', name)
  for (const query of ['$httpMethod=POST', 'a=1&%24httpmethod=POST'])
    t.equal(kindOfGet(`/v1/models/m:generateContent?${query}`, [], 'DELETE'), 'other', query)
  t.equal(kindOfGet('/v1/models?filter=%24httpMethod', ['X-HTTP-Methods', 'x']), 'free')
})
