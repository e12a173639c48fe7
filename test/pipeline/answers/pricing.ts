import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseTarget } from '../../../src/base/target.ts'
import { createHighestPrices, createPrices } from '../../../src/llm/prices.ts'
import { createPricing } from '../../../src/pipeline/answers/pricing.ts'
import { type Tree, testConfig } from '../../fixtures/gateway.ts'

const now = Date.parse('2026-03-10T12:00:00Z')
const tokens = { input: 1_000_000, output: 100_000, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 }

function originOf(url: string) {
  const target = parseTarget(url)
  if (typeof target === 'string') throw new Error(target)
  return target.origin
}
const openai = { origin: originOf('https://api.openai.com/'), provider: 'openai' as const }
const vllm = { origin: originOf('http://vllm.internal:8000/'), provider: 'other' as const }
const router = { origin: originOf('https://openrouter.ai/'), provider: 'openrouter' as const }

const data = JSON.parse(readFileSync(new URL('../../../prices.json', import.meta.url), 'utf8'))
const published = { priceOf: createPrices(data), highestOf: createHighestPrices(data) }
const costs = (settings: Tree = {}) => createPricing(testConfig(settings), published).costOf
const charges = (UnknownModels: string) =>
  createPricing(testConfig({ Metering: { UnknownModels } }), published).chargeOf

t.test('a known model has the built-in price', async t => {
  t.equal(costs()({ ...openai, model: 'gpt-4o-2024-08-06', tokens }, now), 3.5)
})

t.test('a model without a price has no cost', async t => {
  t.equal(costs()({ ...openai, model: 'no-such-model', tokens }, now), undefined)
  t.equal(costs()({ ...openai, model: undefined, tokens }, now), undefined)
  t.equal(costs()({ ...vllm, model: 'qwen', tokens }, now), undefined)
})

t.test('prices of the settings come first, and the first of them that fits counts', async t => {
  const Prices = [
    { Host: 'vllm.internal:8000', Model: 'qwen*coder', Input: 1, Output: 10 },
    { Host: 'vllm.internal:8000', Model: 'QWEN*', Input: 2, PerCall: 0.25 },
    { Model: 'gpt-4o-2024-08-06', Input: 7 },
  ]
  const cost = costs({ Prices })
  t.equal(cost({ ...vllm, model: 'qwen3-coder', tokens }, now), 2)
  t.equal(cost({ ...vllm, model: 'qwen3', tokens }, now), 2.25)
  t.equal(cost({ ...vllm, model: 'other-qwen3', tokens }, now), undefined)
  t.equal(cost({ ...openai, model: 'gpt-4o-2024-08-06', tokens }, now), 7)
})

t.test('a price for all models of a host needs no name of a model', async t => {
  const cost = costs({ Prices: [{ Host: 'vllm.internal:8000', Input: 2 }] })
  t.equal(cost({ ...vllm, model: undefined, tokens }, now), 2)
})

t.test('signs in a name stand for themselves', async t => {
  const cost = costs({ Prices: [{ Model: 'a.b+c(*)', Input: 1 }] })
  t.equal(cost({ ...vllm, model: 'a.b+c(7)', tokens }, now), 1)
  t.equal(cost({ ...vllm, model: 'axb+c(7)', tokens }, now), undefined)
})

t.test('cached tokens have their own prices', async t => {
  const cost = costs({ Prices: [{ Model: '*', Input: 2, CacheRead: 0.2, CacheWrite: 3 }] })
  const cached = { ...tokens, input: 0, output: 0, cacheRead: 1_000_000, cacheWrite: 1_000_000 }
  t.equal(cost({ ...vllm, model: 'm', tokens: cached }, now), 3.2)
})

t.test('the cost in an answer counts for the hosts of CostFromAnswer', async t => {
  const answered = { ...tokens, cost: 0.0123 }
  t.equal(costs()({ ...router, model: 'openai/gpt-4o', tokens: answered }, now), 0.0123)
  t.equal(costs()({ ...vllm, model: 'qwen', tokens: answered }, now), undefined)
  const Metering = { CostFromAnswer: ['vllm.internal:8000'] }
  t.equal(costs({ Metering })({ ...vllm, model: 'qwen', tokens: answered }, now), 0.0123)
})

t.test('built-in prices and costs in answers are converted, those of the settings are not', async t => {
  const cost = costs({ Metering: { ExchangeRate: 0.5 }, Prices: [{ Model: 'own', Input: 1 }] })
  t.equal(cost({ ...openai, model: 'gpt-4o-2024-08-06', tokens }, now), 1.75)
  t.equal(cost({ ...router, model: 'x', tokens: { ...tokens, cost: 3 } }, now), 1.5)
  t.equal(cost({ ...vllm, model: 'own', tokens }, now), 1)
})

t.test('Metering:UnknownModels decides what a budget is charged for a model without a price', async t => {
  const call = { ...openai, model: 'no-such-model', tokens }
  t.equal(charges('Refuse')(call, now), undefined)
  t.equal(charges('Free')(call, now), 0)
  const highest = charges('Highest')(call, now) ?? 0
  for (const model of ['gpt-4o', 'o1-pro', 'gpt-4.5-preview'])
    t.ok(highest >= (costs()({ ...call, model }, now) ?? 0), model)
  t.equal(charges('Free')({ ...call, model: 'gpt-4o' }, now), costs()({ ...call, model: 'gpt-4o' }, now))
  t.equal(charges('Highest')({ ...vllm, model: 'qwen', tokens }, now), undefined, 'a host without any price')
})
