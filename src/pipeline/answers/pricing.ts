import { type HostAndPort, isAtHost, parseHostAndPort } from '../../base/host-port.ts'
import type { Origin } from '../../base/origin.ts'
import type { Config } from '../../config/schema.ts'
import type { PriceEntry } from '../../llm/price-data.ts'
import { costOf, type PriceOf } from '../../llm/prices.ts'
import type { ProviderId } from '../../llm/providers.ts'
import type { Usage } from '../../llm/usage.ts'

/** What is priced. */
export interface PricedCall {
  readonly origin: Origin
  readonly provider: ProviderId
  readonly model: string | undefined
  readonly tokens: Usage
}

/** The cost of a call in Metering:Currency; undefined when its model has no price. @param now epoch milliseconds */
export type CostOf = (call: PricedCall, now: number) => number | undefined

/** A price of the settings. */
interface OwnPrice {
  readonly host: HostAndPort | undefined
  readonly model: RegExp
  readonly entry: PriceEntry
}

/** Prices of the settings, or else what the provider says, or else those that are published. */
export function createCosts({ Metering, Prices }: Pick<Config, 'Metering' | 'Prices'>, published: PriceOf): CostOf {
  const own = Prices.map(ownPrice)
  const trusted = Metering.CostFromAnswer.map(parseHostAndPort)
  const inCurrency = (usd: number): number => usd * Metering.ExchangeRate
  return ({ origin, provider, model, tokens }, now) => {
    const set = own.find(price => applies(price, origin, model))
    if (set !== undefined) return rounded(costOf(set.entry, tokens))
    const { cost } = tokens
    if (cost !== undefined && trusted.some(place => isAtHost(place, origin))) return rounded(inCurrency(cost))
    const price = model === undefined ? undefined : published(provider, model, now)
    return price === undefined ? undefined : rounded(inCurrency(costOf(price, tokens)))
  }
}

function ownPrice({ Host, Model, ...price }: Config['Prices'][number]): OwnPrice {
  const pattern = Model.split('*').map(escaped).join('.*')
  return {
    host: Host === undefined ? undefined : parseHostAndPort(Host),
    model: new RegExp(`^${pattern}$`, 'i'),
    entry: {
      input: price.Input,
      output: price.Output,
      cacheRead: price.CacheRead ?? price.Input,
      cacheWrite: price.CacheWrite ?? price.Input,
      perCall: price.PerCall,
    },
  }
}

const escaped = (text: string): string => text.replace(/[\\^$.+?()[\]{}|]/g, '\\$&')

function applies({ host, model: pattern }: OwnPrice, origin: Origin, model: string | undefined): boolean {
  return (host === undefined || isAtHost(host, origin)) && pattern.test(model ?? '')
}

/** Sums of binary fractions end in many digits. */
const rounded = (cost: number): number => Math.round(cost * 1e9) / 1e9
