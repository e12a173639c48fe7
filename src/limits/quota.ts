import type { SharedAmount } from './shared-table.ts'

export interface QuotaLimits {
  /** Limit of all keys together. */
  readonly all: number
  /** Limit of one key; 0 is no limit. */
  readonly each: number
}

/** Limits an amount over all threads: of all keys together, and of each. */
export interface Quota<Bound> {
  /**
   * Adds to the amount if the limits allow it. Otherwise nothing is added, and the result names the limit that was reached.
   *
   * @param key undefined: counts in the total alone
   */
  take(key: string | undefined, amount: number): Bound | undefined
  /** Subtracts an amount that this thread added before. */
  give(key: string | undefined, amount: number): void
  inAll(): number
}

/** Key of the total. No agent or peer has this name. */
const total = '*'

/** @param bounds names of the two limits */
export function createQuota<Bound>(
  { all, each }: QuotaLimits,
  bounds: { readonly all: Bound; readonly each: Bound },
  taken: SharedAmount,
): Quota<Bound> {
  const isCounted = (key: string | undefined): key is string => key !== undefined && each > 0
  return {
    take(key, amount) {
      if (isCounted(key) && !taken.take(key, amount, each)) return bounds.each
      if (taken.take(total, amount, all)) return undefined
      if (isCounted(key)) taken.give(key, amount)
      return bounds.all
    },
    give(key, amount) {
      taken.give(total, amount)
      if (isCounted(key)) taken.give(key, amount)
    },
    inAll: () => taken.of(total),
  }
}
