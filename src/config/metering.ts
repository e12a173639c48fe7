import { currency, hostAndPort } from './formats.ts'
import { boolean, choice, list, number, objects, optional, optionalNumber, text } from './setting.ts'

/** Settings under `Metering`: what calls of models use. */
export const metering = {
  Usage: boolean(
    false,
    'Read from the answers of model providers how many tokens each call used, for the log and the metrics. These calls ask for answers without compression.',
  ),
  Hosts: list(
    'Model servers beside the known providers, such as vllm.internal:8000: a name or pattern, with :port unless it is the usual one.',
    hostAndPort,
  ),
  PricesFile: optional(
    'JSON file with prices of models in USD, as genai-prices or LiteLLM publish it, relative to gateway.yaml: before the built-in ones. SIGHUP reloads it.',
  ),
  CostFromAnswer: list(
    'Providers whose answers have the cost in USD, which is taken, written as in Hosts.',
    hostAndPort,
    ['openrouter.ai'],
  ),
  ExchangeRate: number(1, 'Built-in prices and costs in answers are in USD: they are multiplied by this.', {
    min: 0.000_001,
    max: 1_000_000,
  }),
  UnknownModels: choice(
    ['Refuse', 'Highest', 'Free'],
    'Refuse',
    'Calls of models without a price under a budget of money: refuse them, count them at the highest price of the provider, or as free.',
  ),
  MissingUsage: choice(
    ['Estimate', 'Refuse'],
    'Estimate',
    'Streams under a budget that do not ask for their usage (stream_options.include_usage of OpenAI): estimate it from their length, or refuse them.',
  ),
  OtherCalls: choice(
    ['Refuse', 'Allow'],
    'Refuse',
    'Calls of a provider whose answers tell no usage, such as batches and realtime, under a budget of tokens or money.',
  ),
  AnswerFields: boolean(
    true,
    'Answers of models under a budget of tokens or money of their agent say what is left of it, in RateLimit and RateLimit-Policy, unless the upstream has these fields.',
  ),
  Currency: text('USD', 'Name of the currency of prices and budgets, for people.', currency),
} as const

const range = { min: 0, max: 1_000_000 }

/** Prices of one's own, each for a million tokens. */
export const prices = objects(
  {
    Host: optional('Host of the model, written as in Metering:Hosts; absent: any.', hostAndPort),
    Model: text('*', 'Its name, in which * stands for any text.'),
    Input: number(0, 'For tokens that the model reads.', range),
    Output: number(0, 'For tokens that it writes.', range),
    CacheRead: optionalNumber('For tokens that it reads from a cache; absent: as Input.', range),
    CacheWrite: optionalNumber('For tokens that it writes to a cache; absent: as Input.', range),
    PerCall: number(0, 'For each call, beside its tokens.', range),
  },
  'Prices of models for a million tokens, before the built-in ones; the first that fits counts. See docs/metrics.md.',
)
