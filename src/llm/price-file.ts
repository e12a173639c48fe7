/** Prices in the two forms in which others publish them: of genai-prices, and of LiteLLM. */
import { isObject } from '../base/records.ts'
import type { Match, ModelPrices, PriceData, PriceEntry, ProviderPrices, TokenPrice } from './price-data.ts'
import { type ProviderId, providerIds } from './providers.ts'

type Providers = PriceData['providers']
type Json = Readonly<Record<string, unknown>>

/** What it has of known providers; undefined when it has no price at all. What it has beside is not read. */
export function readPriceFile(json: unknown): Providers | undefined {
  const found = Array.isArray(json) ? ofGenaiPrices(json) : isObject(json) ? ofLiteLlm(json) : {}
  return Object.values(found).some(({ models }) => models.length > 0) ? found : undefined
}

/** Models of the first come before those of the second. */
export function mergePrices(first: Providers, second: Providers): Providers {
  const merged = providerIds.flatMap(id => {
    const both = [first[id], second[id]].filter(each => each !== undefined)
    const also = both.find(each => each.also !== undefined)?.also
    const models = both.flatMap(each => each.models)
    return models.length === 0 ? [] : [[id, { models, ...(also && { also }) }] as const]
  })
  return Object.fromEntries(merged)
}

/** @param list its providers */
export function ofGenaiPrices(list: readonly unknown[]): Providers {
  const providers = list.filter(isObject).flatMap(({ id, models, fallback_model_providers: also }) => {
    const known = providerIds.find(each => each === id)
    if (known === undefined || !Array.isArray(models)) return []
    const own: ProviderPrices = { models: models.filter(isObject).flatMap(modelOf) }
    return [[known, Array.isArray(also) ? { ...own, also: also.map(String) } : own] as const]
  })
  return Object.fromEntries(providers)
}

function modelOf({ match, prices }: Json): readonly ModelPrices[] {
  if (!isMatch(match)) return []
  const conditional = Array.isArray(prices) ? prices.filter(isObject) : [{ prices }]
  const entries = conditional.flatMap(each => entryOf(each))
  return entries.length === 0 ? [] : [{ match, prices: entries }]
}

function isMatch(value: unknown): value is Match {
  if (!isObject(value)) return false
  const [[kind, operand] = []] = Object.entries(value)
  if (kind === 'or' || kind === 'and') return Array.isArray(operand) && operand.every(isMatch)
  if (typeof operand !== 'string' || operand === '') return false
  return kind === 'regex' ? isPattern(operand) : ['equals', 'starts_with', 'ends_with', 'contains'].includes(`${kind}`)
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text)
    return true
  } catch {
    return false
  }
}

/** Images and sound have prices of their own where a model has none for text. */
function entryOf({ prices, constraint }: Json): readonly PriceEntry[] {
  if (!isObject(prices)) return []
  const first = (...names: string[]) =>
    names.map(name => tiered(prices[`${name}_mtok`])).find(price => price !== undefined)
  const input = first('input', 'input_image', 'input_audio')
  const output = first('output', 'output_image', 'output_audio')
  if (input === undefined && output === undefined) return []
  const requests = prices['requests_kcount']
  const entry: PriceEntry = {
    input: input ?? 0,
    output: output ?? 0,
    ...given('cacheRead', first('cache_read')),
    ...given('cacheWrite', first('cache_write')),
    ...given('cacheWriteLong', first('cache_write_1h')),
    ...(isPrice(requests) && { perCall: requests / 1_000 }),
  }
  return [{ ...entry, ...conditionOf(constraint) }]
}

function given<K extends string>(name: K, price: TokenPrice | undefined): { readonly [N in K]?: TokenPrice } {
  // The key is the only one of that type.
  return (price === undefined ? {} : { [name]: price }) as { readonly [N in K]?: TokenPrice }
}

function conditionOf(constraint: unknown): Pick<PriceEntry, 'from' | 'hours'> {
  if (!isObject(constraint)) return {}
  const { start_date: from, start_time: start, end_time: end } = constraint
  if (typeof from === 'string') return { from }
  return typeof start === 'string' && typeof end === 'string' ? { hours: [start.slice(0, 5), end.slice(0, 5)] } : {}
}

function tiered(price: unknown): TokenPrice | undefined {
  if (!isObject(price)) return isPrice(price) ? price : undefined
  const { base, tiers } = price
  if (!isPrice(base) || !Array.isArray(tiers)) return undefined
  const above = tiers.filter(isObject).flatMap(({ start, price: each }) => {
    return isPrice(start) && isPrice(each) ? [[start, each] as const] : []
  })
  return [base, ...above.sort(([one], [other]) => one - other)]
}

const isPrice = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0

/** Providers of LiteLLM by the beginnings of their names. */
const liteLlmProviders: readonly (readonly [string, ProviderId])[] = [
  ['azure', 'azure'],
  ['text-completion-openai', 'openai'],
  ['gemini', 'google'],
  ['vertex_ai', 'google'],
  ['bedrock', 'aws'],
  ['cohere', 'cohere'],
  ['together_ai', 'together'],
  ['fireworks_ai', 'fireworks'],
  ['xai', 'x-ai'],
  ['moonshot', 'moonshotai'],
  ['voyage', 'voyageai'],
]

function ofLiteLlm(models: Json): Providers {
  const found = new Map<ProviderId, ModelPrices[]>()
  for (const [name, entry] of Object.entries(models)) {
    const provider = isObject(entry) ? providerOf(entry['litellm_provider']) : undefined
    const price = isObject(entry) ? liteLlmEntry(entry) : undefined
    if (provider === undefined || price === undefined) continue
    const own = found.get(provider) ?? []
    found.set(provider, own)
    own.push({ match: { equals: withoutProvider(name, entry) }, prices: [price] })
  }
  return Object.fromEntries([...found].map(([id, own]) => [id, { models: own }]))
}

function providerOf(name: unknown): ProviderId | undefined {
  if (typeof name !== 'string') return undefined
  return providerIds.find(id => id === name) ?? liteLlmProviders.find(([beginning]) => name.startsWith(beginning))?.[1]
}

/** `groq/llama-3` is what LiteLLM calls `llama-3` at that provider. */
function withoutProvider(name: string, entry: unknown): string {
  const prefix = `${isObject(entry) ? entry['litellm_provider'] : ''}/`
  return name.startsWith(prefix) ? name.slice(prefix.length) : name
}

/** Its prices are for one token. */
function liteLlmEntry(entry: Json): PriceEntry | undefined {
  const of = (name: string) => liteLlmPrice(entry, name)
  const input = of('input_cost_per_token')
  const output = of('output_cost_per_token')
  if (input === undefined && output === undefined) return undefined
  return {
    input: input ?? 0,
    output: output ?? 0,
    ...given('cacheRead', of('cache_read_input_token_cost')),
    ...given('cacheWrite', of('cache_creation_input_token_cost')),
    ...given('cacheWriteLong', perMillion(entry['cache_creation_input_token_cost_above_1hr'])),
  }
}

function liteLlmPrice(entry: Json, name: string): TokenPrice | undefined {
  const base = perMillion(entry[name])
  if (base === undefined) return undefined
  const tiers = Object.keys(entry).flatMap(key => {
    const [, thousands] = key.startsWith(name) ? (/^_above_(\d+)k_tokens$/.exec(key.slice(name.length)) ?? []) : []
    const price = perMillion(entry[key])
    return thousands === undefined || price === undefined ? [] : [[Number(thousands) * 1_000, price] as const]
  })
  return tiers.length === 0 ? base : [base, ...tiers.sort(([one], [other]) => one - other)]
}

/** Fractions of a cent end in many digits. */
const perMillion = (price: unknown): number | undefined => (isPrice(price) ? Math.round(price * 1e12) / 1e6 : undefined)
