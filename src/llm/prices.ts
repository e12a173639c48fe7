/** What calls of models cost. */
import { Memo } from '../base/memo.ts'
import type { Match, ModelPrices, PriceData, PriceEntry, ProviderPrices, TokenPrice } from './price-data.ts'
import type { ProviderId } from './providers.ts'
import type { Usage } from './usage.ts'

/** The price of a model at a time; undefined when it has none. @param now epoch milliseconds */
export type PriceOf = (provider: ProviderId, model: string, now: number) => PriceEntry | undefined

/** Prices of the data set. */
export function createPrices({ providers }: Pick<PriceData, 'providers'>): PriceOf {
  const found = new Memo<string, ModelPrices | undefined>(1_024)
  const modelOf = (provider: ProviderId, model: string): ModelPrices | undefined => {
    const key = `${provider} ${model}`
    if (found.has(key)) return found.get(key)
    const own = findModel(model, provider, providers) ?? findModel(withDashes(model), provider, providers)
    found.set(key, own)
    return own
  }
  return (provider, model, now) => {
    const prices = modelOf(provider, model)?.prices
    return prices?.findLast(entry => appliesAt(entry, now)) ?? prices?.[0]
  }
}

/** The highest price of any model at a provider; undefined when it has none. */
export function createHighestPrices({
  providers,
}: Pick<PriceData, 'providers'>): (of: ProviderId) => PriceEntry | undefined {
  const found = new Map<ProviderId, PriceEntry | undefined>()
  return provider => {
    if (!found.has(provider)) found.set(provider, highestOf(entriesOf(provider, providers)))
    return found.get(provider)
  }
}

function entriesOf(provider: string, all: PriceData['providers']): readonly PriceEntry[] {
  const prices: ProviderPrices | undefined = Object.hasOwn(all, provider) ? all[provider] : undefined
  if (prices === undefined) return []
  return [
    ...prices.models.flatMap(model => model.prices),
    ...(prices.also ?? []).flatMap(other => entriesOf(other, all)),
  ]
}

function highestOf(entries: readonly PriceEntry[]): PriceEntry | undefined {
  if (entries.length === 0) return undefined
  const of = (price: (entry: PriceEntry) => TokenPrice): number =>
    entries.reduce((highest, entry) => Math.max(highest, top(price(entry))), 0)
  const input = of(entry => entry.input)
  return { input, output: of(entry => entry.output), cacheWrite: of(entry => entry.cacheWrite ?? entry.input) }
}

function top(price: TokenPrice): number {
  if (typeof price === 'number') return price
  const [base, ...tiers] = price
  return Math.max(base, ...tiers.map(([, each]) => each))
}

function findModel(name: string, provider: string, all: PriceData['providers']): ModelPrices | undefined {
  const prices: ProviderPrices | undefined = Object.hasOwn(all, provider) ? all[provider] : undefined
  if (prices === undefined) return undefined
  const own = prices.models.find(({ match }) => matches(match, name))
  if (own !== undefined) return own
  for (const other of prices.also ?? []) {
    const model = findModel(name, other, all)
    if (model !== undefined) return model
  }
  return undefined
}

/** Providers write the day of a model as `20260315` or as `2026-03-15`. */
const withDashes = (model: string): string =>
  model.replace(/-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)/, '-$1-$2-$3')

function matches(match: Match, name: string): boolean {
  if ('or' in match) return match.or.some(each => matches(each, name))
  if ('and' in match) return match.and.every(each => matches(each, name))
  if ('regex' in match) return new RegExp(match.regex).test(name)
  const lower = name.toLowerCase()
  if ('equals' in match) return lower === match.equals.toLowerCase()
  if ('starts_with' in match) return lower.startsWith(match.starts_with.toLowerCase())
  if ('ends_with' in match) return lower.endsWith(match.ends_with.toLowerCase())
  return lower.includes(match.contains.toLowerCase())
}

function appliesAt({ from, hours }: PriceEntry, now: number): boolean {
  if (from !== undefined) return now >= Date.parse(from)
  if (hours === undefined) return true
  const [start, end] = hours
  const time = new Date(now).toISOString().slice(11, 16)
  // An end before the start lies on the next day.
  return start < end ? time >= start && time < end : time >= start || time < end
}

const million = 1e6

/** What tokens cost at a price. A call whose input is long may cost more for each token. */
export function costOf(price: PriceEntry, { input, output, cacheRead, cacheWrite, cacheWriteLong }: Usage): number {
  const whole = input + cacheRead + cacheWrite + cacheWriteLong
  const each = (of: TokenPrice): number => at(of, whole)
  const cost =
    input * each(price.input) +
    output * each(price.output) +
    cacheRead * each(price.cacheRead ?? price.input) +
    cacheWrite * each(price.cacheWrite ?? price.input) +
    cacheWriteLong * (price.cacheWriteLong === undefined ? longWrite * each(price.input) : each(price.cacheWriteLong))
  return cost / million + (price.perCall ?? 0)
}

/** Prices of writes for an hour, where no other is known, as a multiple of the input's. */
const longWrite = 2

function at(price: TokenPrice, tokens: number): number {
  if (typeof price === 'number') return price
  const [base, ...tiers] = price
  let found = base
  for (const [above, other] of tiers) if (tokens > above) found = other
  return found
}
