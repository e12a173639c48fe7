import t from 'tap'
import { mergePrices, ofGenaiPrices, readPriceFile } from '../../src/llm/price-file.ts'
import { createPrices } from '../../src/llm/prices.ts'

const now = Date.parse('2026-03-10T12:00:00Z')

t.test('a file of genai-prices', async t => {
  const found = readPriceFile([
    {
      id: 'openai',
      api_pattern: 'https://api\\.openai\\.com',
      models: [
        {
          id: 'gpt-x',
          match: { or: [{ equals: 'gpt-x' }, { regex: '^gpt-x-\\d+$' }] },
          context_window: 128_000,
          prices: { input_mtok: 1, output_mtok: 4, cache_read_mtok: 0.1, requests_kcount: 2, web_searches_kcount: 10 },
        },
        {
          match: { starts_with: 'long' },
          prices: {
            input_mtok: {
              base: 1,
              tiers: [
                { start: 500_000, price: 3 },
                { start: 200_000, price: 2 },
              ],
            },
          },
        },
        {
          match: { equals: 'dated' },
          prices: [
            { prices: { input_mtok: 1, output_mtok: 1 } },
            { constraint: { type: 'start_date', start_date: '2026-01-01' }, prices: { input_mtok: 2, output_mtok: 2 } },
            {
              constraint: { type: 'time_of_date', start_time: '00:30:00Z', end_time: '01:30:00Z' },
              prices: { input_mtok: 3, output_mtok: 3 },
            },
          ],
        },
        { match: { equals: 'image' }, prices: { output_image_mtok: 40, cache_write_1h_mtok: 8, cache_write_mtok: 5 } },
      ],
    },
    { id: 'azure', models: [], fallback_model_providers: ['openai'] },
    {
      id: 'a provider that the gateway does not know',
      models: [{ match: { equals: 'x' }, prices: { input_mtok: 1 } }],
    },
  ])
  t.strictSame(found, {
    openai: {
      models: [
        {
          match: { or: [{ equals: 'gpt-x' }, { regex: '^gpt-x-\\d+$' }] },
          prices: [{ input: 1, output: 4, cacheRead: 0.1, perCall: 0.002 }],
        },
        { match: { starts_with: 'long' }, prices: [{ input: [1, [200_000, 2], [500_000, 3]], output: 0 }] },
        {
          match: { equals: 'dated' },
          prices: [
            { input: 1, output: 1 },
            { input: 2, output: 2, from: '2026-01-01' },
            { input: 3, output: 3, hours: ['00:30', '01:30'] },
          ],
        },
        { match: { equals: 'image' }, prices: [{ input: 0, output: 40, cacheWrite: 5, cacheWriteLong: 8 }] },
      ],
    },
    azure: { models: [], also: ['openai'] },
  })
})

t.test('a file of LiteLLM', async t => {
  const found = readPriceFile({
    sample_spec: { litellm_provider: 'one of https://docs.litellm.ai', input_cost_per_token: 0 },
    'gpt-x': { litellm_provider: 'openai', input_cost_per_token: 1.25e-6, output_cost_per_token: 1e-5 },
    'groq/llama-x': { litellm_provider: 'groq', input_cost_per_token: 5e-8, output_cost_per_token: 8e-8 },
    'vertex_ai/gemini-x': {
      litellm_provider: 'vertex_ai-language-models',
      input_cost_per_token: 1.25e-6,
      input_cost_per_token_above_200k_tokens: 2.5e-6,
      output_cost_per_token: 1e-5,
    },
    'claude-x': {
      litellm_provider: 'anthropic',
      input_cost_per_token: 3e-6,
      input_cost_per_token_batches: 1.5e-6,
      output_cost_per_token: 1.5e-5,
      cache_read_input_token_cost: 3e-7,
      cache_creation_input_token_cost: 3.75e-6,
      cache_creation_input_token_cost_above_1hr: 6e-6,
    },
    'an-image': { litellm_provider: 'openai', output_cost_per_image: 0.04 },
    other: { litellm_provider: 'replicate', input_cost_per_token: 1 },
  })
  t.strictSame(found?.['openai']?.models, [{ match: { equals: 'gpt-x' }, prices: [{ input: 1.25, output: 10 }] }])
  t.strictSame(found?.['groq']?.models, [{ match: { equals: 'llama-x' }, prices: [{ input: 0.05, output: 0.08 }] }])
  t.strictSame(found?.['anthropic']?.models, [
    {
      match: { equals: 'claude-x' },
      prices: [{ input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75, cacheWriteLong: 6 }],
    },
  ])
  t.strictSame(found?.['google']?.models[0]?.prices, [{ input: [1.25, [200_000, 2.5]], output: 10 }])
  t.strictSame(Object.keys(found ?? {}).sort(), ['anthropic', 'google', 'groq', 'openai'])
})

t.test('what is no price is left out, and a file without any is none', async t => {
  const model = (prices: unknown, match: unknown = { equals: 'x' }) => [{ id: 'openai', models: [{ match, prices }] }]
  for (const file of [
    ...[[], {}, null, 'text', 5, [null], { openai: 5 }, [{ id: 'openai' }], [{ id: 'openai', models: [null] }]],
    ...[model({}), model({ input_mtok: -1 }), model({ input_mtok: 'free' }), model({ input_mtok: Number.NaN })],
    ...[model({ input_mtok: { base: 1 } }), model(null), model({ input_mtok: 1 }, null)],
    ...[{ equals: '' }, { regex: '(' }, { or: [{ sounds_like: 'x' }] }, {}].map(match =>
      model({ input_mtok: 1 }, match),
    ),
    { x: { litellm_provider: 'openai', input_cost_per_token: -1 } },
  ]) {
    t.equal(readPriceFile(file), undefined, JSON.stringify(file))
  }
})

t.test('the prices of a file come first, and the others stay', async t => {
  const one = (name: string, input: number) => ({ match: { equals: name }, prices: { input_mtok: input } })
  const file = ofGenaiPrices([{ id: 'openai', models: [one('a', 1)] }])
  const builtIn = ofGenaiPrices([
    { id: 'openai', models: [one('a', 2), one('b', 3)] },
    { id: 'azure', models: [one('c', 4)], fallback_model_providers: ['openai'] },
  ])
  const priceOf = createPrices({ providers: mergePrices(file, builtIn) })
  t.strictSame(
    [
      priceOf('openai', 'a', now),
      priceOf('openai', 'b', now),
      priceOf('azure', 'c', now),
      priceOf('azure', 'a', now),
    ].map(price => price?.input),
    [1, 3, 4, 1],
  )
})
