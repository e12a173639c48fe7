/** Calls of gateways to the buckets of a fleet, and how long the answers hold. */
import type { CallerRate } from './caller-rate.ts'
import type { RateLimit } from './token-bucket.ts'

/** A gateway's ask to the bucket of a key, with a report on the tokens that it has leased. */
export interface LeaseAsk {
  readonly key: string
  readonly want: number
  /** Leased tokens that requests took since the last ask. */
  readonly used: number
  /** Leased tokens that were not needed. */
  readonly returned: number
  /** Requests that passed without a token. Below 0: tokens that were spent, and not needed after all. */
  readonly debt: number
  /** Requests that the share of this gateway let pass out of its burst, while the bucket did not answer. */
  readonly own?: number
  /**
   * Requests that the share let pass at its rate: taken from the tokens that the bucket gained meanwhile, also beyond its
   * burst.
   */
  readonly paced?: number
  /** Whether tokens are spent with the answer: the bucket does not wait for a report on them. */
  readonly isSpent?: boolean
  /** Time of the database at the last lease, milliseconds. More than `reportMs` later, `used` and `returned` do not count. */
  readonly leasedAt: number
}

/** All keys of a call have the same limit. */
export interface LeaseCall {
  readonly limit: RateLimit
  readonly asks: readonly LeaseAsk[]
}

export interface LeaseAnswer {
  readonly key: string
  readonly granted: number
  /** Milliseconds until the bucket has more; 0 when it gave all that was asked for. */
  readonly wait: number
  /** Time of the database, milliseconds. */
  readonly at: number
}

/**
 * Minimum time for which the bucket counts leased tokens, milliseconds. The tokens of a gateway that died are free after
 * twice that.
 */
export const leaseMs = 4_000
/** Time after the last lease until which a report counts, milliseconds: then all leased tokens are counted. */
export const reportMs = 2_000
/**
 * Time after the ask for which a gateway may use the tokens, milliseconds. If an answer takes longer, it limits by its
 * share.
 */
export const usableMs = 1_000
/** Gets tokens for the buckets of this gateway. */
export interface TokenLeases extends Pick<CallerRate, 'asked'> {
  need(key: string): void
  close(): void
}
