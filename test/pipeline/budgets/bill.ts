/** What a call costs when its answer does not show it. Threat T77. */
import t from 'tap'
import { parseTarget } from '../../../src/base/target.ts'
import { calledModel } from '../../../src/llm/formats.ts'
import { maxUsage, readModelRequest } from '../../../src/llm/model-request.ts'
import { type BilledModel, type BillParts, finalCost } from '../../../src/pipeline/budgets/bill.ts'
import { createClock } from '../../fixtures/clock.ts'

const parts: BillParts = {
  config: { Metering: { MissingUsage: 'Estimate' } as BillParts['config']['Metering'] },
  clock: createClock(),
  prices: { costOf: () => undefined, chargeOf: () => undefined } as unknown as BillParts['prices'],
  providerAt: () => undefined,
}

/** Tokens that a call of at most 1,000 costs when its answer has 600 bytes and no usage. */
function tokensOf(path: string, streams: boolean, isWhole: boolean): number {
  const called = calledModel(path)
  const target = parseTarget(`https://models.example${path}`)
  if (called === undefined || typeof target === 'string') throw new Error(path)
  const body = Buffer.from(JSON.stringify({ model: 'm', max_tokens: 1_000, stream: streams }))
  const request = readModelRequest(called, body)
  if (request === undefined) throw new Error('the body is not read')
  // The input is left out, so that the output shows.
  const usage = maxUsage(request, 0, true)
  const model: BilledModel = { provider: 'openai', target, called, request, usage }
  const end = { status: 200, usage: undefined, bytes: 600, isWhole }
  return finalCost(model, { tokens: 1_000, money: undefined }, end, parts).tokens
}

t.test('T77 a stream of OpenAI costs at least half of the most, also when it is left', async t => {
  t.equal(tokensOf('/v1/chat/completions', true, true), 500)
  t.equal(tokensOf('/v1/chat/completions', true, false), 500)
})

t.test('a stream of Anthropic that is left costs what came of it: it shows what the model thinks', async t => {
  t.equal(tokensOf('/v1/messages', true, false), 30)
  t.equal(tokensOf('/v1/messages', true, true), 500)
})

t.test('T77 a whole document without usage costs the most', async t => {
  t.equal(tokensOf('/v1/chat/completions', false, true), 1_000)
})
