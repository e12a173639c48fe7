/** What gateways ask the buckets of a fleet, and for how long the answers hold. */
import type { CallerRate } from './caller-rate.ts'
import type { RateLimit } from './token-bucket.ts'

/** What a gateway asks the bucket of a key for, and what became of the tokens that it has leased. */
export interface LeaseAsk {
  readonly key: string
  /** Tokens to lease. */
  readonly want: number
  /** Leased tokens that requests took since the last ask. */
  readonly used: number
  /** Leased tokens that were not needed. */
  readonly returned: number
  /** Requests that passed without a token. Below 0: tokens that were spent, and not needed after all. */
  readonly debt: number
  /** Those that the own share of this gateway let pass at once, while the bucket did not answer. */
  readonly own?: number
  /** Those that it let pass at its pace: taken from what the bucket has gained meanwhile, also where it had no room for it. */
  readonly paced?: number
  /** Whether tokens are spent with the answer: the bucket does not hold them until it is told what became of them. */
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

/** The bucket counts leased tokens for so long at least, milliseconds. A gateway that died keeps them no longer than twice that. */
export const leaseMs = 4_000
/** It is told so long after the last lease what became of them: all of them are counted then. */
export const reportMs = 2_000
/** A gateway uses tokens for so long after it has asked for them. If an answer takes longer, it limits by its own share. */
export const usableMs = 1_000
/** Gets tokens for the buckets of this gateway. */
export interface TokenLeases extends Pick<CallerRate, 'asked'> {
  /** Tokens of the key are needed. */
  need(key: string): void
  close(): void
}
