/** The shape of prices.json, which `node test/fixtures/prices.ts` writes. */
export interface PriceData {
  /** Name and version of the data set. */
  readonly source: string
  readonly license: string
  readonly unit: string
  readonly providers: Readonly<Record<string, ProviderPrices>>
}

export interface ProviderPrices {
  /** The first one that matches counts. */
  readonly models: readonly ModelPrices[]
  /** Providers whose models it serves at their prices. */
  readonly also?: readonly string[]
}

export interface ModelPrices {
  readonly match: Match
  /** The last one that applies now counts. */
  readonly prices: readonly PriceEntry[]
}

/** Which names a model has. Letter case does not count, but in a regular expression. */
export type Match =
  | { readonly or: readonly Match[] }
  | { readonly and: readonly Match[] }
  | { readonly equals: string }
  | { readonly starts_with: string }
  | { readonly ends_with: string }
  | { readonly contains: string }
  | { readonly regex: string }

/** Per million tokens. In a list: the usual price, and others for calls that read more than so many tokens. */
export type TokenPrice = number | readonly [number, ...(readonly [above: number, price: number])[]]

export interface PriceEntry {
  readonly input: TokenPrice
  readonly output: TokenPrice
  /** Absent: as the input. */
  readonly cacheRead?: TokenPrice
  readonly cacheWrite?: TokenPrice
  /** Absent: twice the input. */
  readonly cacheWriteLong?: TokenPrice
  readonly perCall?: number
  /** Since that day, UTC. */
  readonly from?: string
  /** Between these times of the day, UTC: `00:30`, `16:30`. */
  readonly hours?: readonly [string, string]
}
