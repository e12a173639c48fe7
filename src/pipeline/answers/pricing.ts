import { isAtHost, parseHostAndPort } from '../../base/host-port.ts'
import type { Origin } from '../../base/origin.ts'
import { wildcard } from '../../base/wildcard.ts'
import type { Config } from '../../config/schema.ts'
import type { PriceEntry } from '../../llm/price-data.ts'
import { costOf as costAt, type PriceOf } from '../../llm/prices.ts'
import type { ProviderId } from '../../llm/providers.ts'
import type { Usage } from '../../llm/usage.ts'

export interface PricedCall {
  readonly origin: Origin
  readonly provider: ProviderId
  readonly model: string | undefined
  readonly tokens: Usage
}

/** The cost of a call in Metering:Currency; undefined when its model has no price. @param now epoch milliseconds */
export type CostOf = (call: PricedCall, now: number) => number | undefined

/** Prices as calls need them. */
export interface Pricing {
  readonly costOf: CostOf
  /** What a budget is charged: the same, but Metering:UnknownModels decides on models without a price. */
  readonly chargeOf: CostOf
}

/** A price of the settings. */
type OwnPrice = ReturnType<typeof ownPrice>

export interface Published {
  readonly priceOf: PriceOf
  readonly highestOf: (provider: ProviderId) => PriceEntry | undefined
}

/** Prices of the settings, or else what the provider says, or else those that are published. */
export function createPricing(
  { Metering, Prices }: Pick<Config, 'Metering' | 'Prices'>,
  { priceOf, highestOf }: Published,
): Pricing {
  const own = Prices.map(ownPrice)
  const trusted = Metering.CostFromAnswer.map(parseHostAndPort)
  const inCurrency = (usd: number): number => usd * Metering.ExchangeRate
  const costOf: CostOf = ({ origin, provider, model, tokens }, now) => {
    const set = own.find(price => applies(price, origin, model))
    if (set !== undefined) return rounded(costAt(set.entry, tokens))
    const { cost } = tokens
    if (cost !== undefined && trusted.some(place => isAtHost(place, origin))) return rounded(inCurrency(cost))
    const price = model === undefined ? undefined : priceOf(provider, model, now)
    return price === undefined ? undefined : rounded(inCurrency(costAt(price, tokens)))
  }
  const ofUnknown = ({ provider, tokens }: PricedCall): number | undefined => {
    if (Metering.UnknownModels === 'Free') return 0
    const price = Metering.UnknownModels === 'Highest' ? highestOf(provider) : undefined
    return price === undefined ? undefined : rounded(inCurrency(costAt(price, tokens)))
  }
  return { costOf, chargeOf: (call, now) => costOf(call, now) ?? ofUnknown(call) }
}

function ownPrice({ Host, Model, ...price }: Config['Prices'][number]) {
  return {
    host: Host === undefined ? undefined : parseHostAndPort(Host),
    model: wildcard([Model]),
    entry: {
      input: price.Input,
      output: price.Output,
      cacheRead: price.CacheRead ?? price.Input,
      cacheWrite: price.CacheWrite ?? price.Input,
      perCall: price.PerCall,
    },
  }
}

function applies({ host, model: pattern }: OwnPrice, origin: Origin, model: string | undefined): boolean {
  return (host === undefined || isAtHost(host, origin)) && pattern.test(model ?? '')
}

/** Sums of binary fractions end in many digits. */
const rounded = (cost: number): number => Math.round(cost * 1e9) / 1e9
