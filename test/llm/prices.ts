import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Match, PriceData, PriceEntry, TokenPrice } from '../../src/llm/price-data.ts'
import { costOf, createPrices } from '../../src/llm/prices.ts'
import { providerIds } from '../../src/llm/providers.ts'

const now = Date.parse('2026-03-10T12:00:00Z')
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 }
const flat = (input: number, output: number): PriceEntry => ({ input, output })

const priceOf = createPrices({
  providers: {
    openai: {
      models: [
        { match: { or: [{ equals: 'GPT-a' }, { starts_with: 'gpt-b' }] }, prices: [flat(1, 2)] },
        { match: { and: [{ contains: 'mini' }, { ends_with: '-x' }] }, prices: [flat(3, 4)] },
        { match: { regex: '^o[1-4]$' }, prices: [flat(5, 6)] },
        { match: { contains: 'gpt' }, prices: [flat(7, 8)] },
        { match: { equals: 'dated-2026-03-15' }, prices: [flat(9, 9)] },
      ],
    },
    azure: { models: [{ match: { equals: 'own' }, prices: [flat(10, 10)] }], also: ['mistral', 'openai'] },
    deepseek: {
      models: [
        {
          match: { equals: 'new' },
          prices: [flat(1, 1), { ...flat(2, 2), from: '2026-03-01' }, { ...flat(3, 3), from: '2027-01-01' }],
        },
        { match: { equals: 'night' }, prices: [flat(4, 4), { ...flat(1, 1), hours: ['16:30', '00:30'] }] },
        { match: { equals: 'day' }, prices: [flat(4, 4), { ...flat(1, 1), hours: ['00:30', '16:30'] }] },
        { match: { equals: 'later' }, prices: [{ ...flat(5, 5), from: '2027-01-01' }] },
      ],
    },
  },
})

const inputOf = (...args: Parameters<typeof priceOf>): TokenPrice | undefined => priceOf(...args)?.input

t.test('the first model that matches has the price; letter case does not count', async t => {
  t.equal(inputOf('openai', 'gpt-A', now), 1)
  t.equal(inputOf('openai', 'GPT-B-2', now), 1)
  t.equal(inputOf('openai', 'a-mini-x', now), 3)
  t.equal(inputOf('openai', 'o3', now), 5)
  t.equal(inputOf('openai', 'my-gpt', now), 7)
  t.equal(inputOf('openai', 'unknown', now), undefined)
  t.equal(inputOf('openai', 'unknown', now), undefined, 'asked again')
})

t.test('a day in a name may be written in two ways', async t => {
  t.equal(inputOf('openai', 'dated-20260315', now), 9)
  t.equal(inputOf('openai', 'dated-20261315', now), undefined)
})

t.test('a provider serves the models of others at their prices', async t => {
  t.equal(inputOf('azure', 'own', now), 10)
  t.equal(inputOf('azure', 'o3', now), 5)
  t.equal(inputOf('anthropic', 'o3', now), undefined)
})

t.test('the last price that applies now counts', async t => {
  t.equal(inputOf('deepseek', 'new', now), 2)
  t.equal(inputOf('deepseek', 'new', Date.parse('2026-01-01')), 1)
  t.equal(inputOf('deepseek', 'new', Date.parse('2027-01-01')), 3)
  t.equal(inputOf('deepseek', 'later', now), 5, 'before its first day: no other is known')
})

t.test('a price of some hours of the day', async t => {
  const at = (time: string) => Date.parse(`2026-03-10T${time}Z`)
  const prices = (model: string) =>
    ['00:29:59', '00:30:00', '16:29:59', '16:30:00'].map(time => inputOf('deepseek', model, at(time)))
  t.strictSame(prices('day'), [4, 1, 1, 4])
  t.strictSame(prices('night'), [1, 4, 4, 1])
})

t.test('each kind of token has its price, for a million', async t => {
  const price = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75, cacheWriteLong: 6, perCall: 0.5 }
  const tokens = { input: 1e6, output: 2e6, cacheRead: 1e6, cacheWrite: 1e6, cacheWriteLong: 1e6 }
  t.equal(costOf(price, tokens), 3 + 30 + 0.3 + 3.75 + 6 + 0.5)
})

t.test('cached tokens without a price cost as the input, and twice that when they are kept for an hour', async t => {
  t.equal(costOf(flat(2, 0), { ...usage, cacheRead: 1e6 }), 2)
  t.equal(costOf(flat(2, 0), { ...usage, cacheWrite: 1e6 }), 2)
  t.equal(costOf(flat(2, 0), { ...usage, cacheWriteLong: 1e6 }), 4)
})

t.test('a long input has another price, for all tokens of the call', async t => {
  const price: PriceEntry = { input: [1, [200_000, 2], [500_000, 4]], output: [10, [200_000, 20]] }
  const cost = (tokens: Partial<typeof usage>) => Math.round(costOf(price, { ...usage, ...tokens }) * 1e6)
  t.equal(cost({ input: 200_000 }), 200_000)
  t.equal(cost({ input: 200_001 }), 400_002)
  t.equal(cost({ input: 1, cacheRead: 200_000, output: 1 }), 2 * 200_001 + 20, 'cached tokens make it long too')
  t.equal(cost({ input: 500_001 }), 4 * 500_001)
})

const data: PriceData = JSON.parse(readFileSync(new URL('../../prices.json', import.meta.url), 'utf8'))
const models = Object.values(data.providers).flatMap(each => each.models)

t.test('prices.json has prices of known providers alone, with its source and license', async t => {
  t.match(data, { source: /^@pydantic\/genai-prices \d/, license: /MIT License.*Permission is hereby granted/ })
  const ids = Object.keys(data.providers)
  t.strictSame(
    ids.filter(id => !providerIds.some(known => known === id)),
    [],
  )
  for (const id of ['openai', 'anthropic', 'google', 'aws', 'azure', 'mistral'] as const) t.ok(ids.includes(id), id)
  t.ok(models.length > 500)
})

t.test('each price in it is a number, each tier begins above the last, and each pattern can be read', async t => {
  const isPrice = (price: unknown) => typeof price === 'number' && price >= 0 && price < 10_000
  const isTokenPrice = (price: TokenPrice | undefined): boolean => {
    if (price === undefined || typeof price === 'number') return price === undefined || isPrice(price)
    const [base, ...tiers] = price
    return isPrice(base) && tiers.every(([above, each], at) => isPrice(each) && above > (tiers[at - 1]?.[0] ?? 0))
  }
  const canMatch = (match: Match): boolean => {
    if ('or' in match) return match.or.every(canMatch)
    if ('and' in match) return match.and.every(canMatch)
    if ('regex' in match) return new RegExp(match.regex).test('') !== undefined
    return Object.values(match).every(text => typeof text === 'string' && text !== '')
  }
  const wrong = models.filter(({ match, prices }) => {
    const entries = prices.every(
      ({ input, output, cacheRead, cacheWrite, cacheWriteLong, perCall = 0, from, hours }) =>
        [input, output, cacheRead, cacheWrite, cacheWriteLong].every(isTokenPrice) &&
        isPrice(perCall) &&
        (from === undefined || Date.parse(from) > 0) &&
        (hours === undefined || hours.every(time => /^\d\d:\d\d$/.test(time))),
    )
    return !entries || prices.length === 0 || !canMatch(match)
  })
  t.strictSame(wrong, [])
})

t.test('models of today have a price', async t => {
  const known = createPrices(data)
  const all = [
    ...([
      ['openai', 'gpt-4o-2024-08-06'],
      ['openai', 'o3'],
      ['azure', 'gpt-4o-2024-08-06'],
      ['google', 'gemini-2.5-pro'],
    ] as const),
    ...([
      ['anthropic', 'claude-sonnet-4-20250514'],
      ['google', 'claude-sonnet-4@20250514'],
    ] as const),
    ...([
      ['aws', 'eu.anthropic.claude-sonnet-4-20250514-v1:0'],
      ['mistral', 'mistral-large-latest'],
    ] as const),
  ]
  t.strictSame(
    all.filter(([provider, model]) => known(provider, model, now) === undefined),
    [],
  )
})
