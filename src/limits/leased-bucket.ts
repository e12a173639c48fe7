/**
 * The part of one gateway in rate limits that hold for a fleet. A bucket of tokens for each key is kept in the database.
 * A gateway leases tokens from it ahead of need, and requests take them from memory that all of its threads share: no
 * request waits for the database while its agent keeps calling. In any time W all gateways together admit at most
 * `burst + pace * W + gateways * debt`.
 */
import type { CallerRate } from './caller-rate.ts'
import type { SharedTable, TableShape } from './shared-table.ts'
import { createRateLimiter, type RateLimit } from './token-bucket.ts'

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
/** A gateway uses tokens for so long after it has asked for them, and discards an answer that took longer. */
const usableMs = 1_000
/** Tokens are asked for before those that are there run out of time, milliseconds. */
const aheadMs = 300
/** A gateway leases what its requests take in this time, milliseconds. */
const supplyMs = 400
/** How fast the measured demand follows, milliseconds. */
const memoryMs = 500
/** A gateway whose asks are not answered limits by its own share for so long, milliseconds. */
const aloneMs = 1_000
/** A key without requests for so long gives its tokens back, milliseconds. */
const idleMs = 600

const field = {
  /** Tokens that can be taken until `until`. */
  have: 0,
  until: 1,
  used: 2,
  /** Tokens that were left when others were leased. */
  spare: 3,
  debt: 4,
  /** Time before which the bucket has nothing. */
  dryUntil: 5,
  /** Requests since the last ask, and when it was. */
  demand: 6,
  askedAt: 7,
  /** Requests a millisecond. */
  pace: 8,
  /** Time of the last request. */
  seenAt: 9,
  /** 1 while an ask is wanted or under way. */
  asking: 10,
  leasedAt: 11,
  /** Until then this gateway limits by its own share, since the bucket does not answer. */
  aloneUntil: 12,
} as const

/** Its table: 13 MiB, of which the system provides only what is used. More active keys than that must wait. */
export const leaseShape: TableShape = { slots: 131_072, fields: 13 }

/** Gets tokens for the buckets of this gateway. */
export interface Tokens extends Pick<CallerRate, 'asked'> {
  /** Tokens of the key are needed. */
  need(key: string): void
  close(): void
}

interface Times {
  readonly sent: number
  readonly now: number
}

export interface LeasedBucketsOptions {
  readonly limit: RateLimit
  /** Of shape `leaseShape`. */
  readonly leases: SharedTable
  /** Of shape `rateShape`: the share of this gateway, for the time that the bucket does not answer. */
  readonly rates: SharedTable
  /** Called when tokens of a key should be asked for. */
  readonly onNeed: (key: string) => void
  /** Gateways of the fleet. */
  readonly members: () => number
}

/** All times are steady milliseconds. */
export class LeasedBuckets {
  readonly limit: RateLimit
  readonly #options: LeasedBucketsOptions
  readonly #table: SharedTable
  readonly #interval: number
  /** Requests that pass without a token while the bucket is asked. */
  readonly #mostDebt: number

  constructor(options: LeasedBucketsOptions) {
    this.limit = options.limit
    this.#options = options
    this.#table = options.leases
    this.#interval = 60_000 / options.limit.requestsPerMinute
    this.#mostDebt = Math.max(1, Math.floor(options.limit.burst / 100))
  }

  /** Takes one request. 0 when it may pass; milliseconds until it may; undefined when the bucket must be asked first. */
  take(key: string, now: number): number | undefined {
    const table = this.#table
    table.lock()
    try {
      const slot = table.claim(key, other => table.get(other, field.seenAt) < now - 2 * leaseMs)
      return slot < 0 ? this.#interval : this.#takeFrom(slot, key, now)
    } finally {
      table.unlock()
    }
  }

  #takeFrom(slot: number, key: string, now: number): number | undefined {
    const table = this.#table
    if (table.get(slot, field.have) === Number.NEGATIVE_INFINITY) this.#begin(slot, now)
    table.set(slot, field.seenAt, now)
    table.set(slot, field.demand, table.get(slot, field.demand) + 1)
    const until = table.get(slot, field.until)
    const have = now < until ? table.get(slot, field.have) : 0
    const isDry = now < table.get(slot, field.dryUntil)
    const needs = have - 1 < this.#supply(slot) / 2 || until - now < aheadMs
    if (needs && !isDry) this.#need(slot, key)
    if (have >= 1) {
      table.set(slot, field.have, have - 1)
      table.set(slot, field.used, table.get(slot, field.used) + 1)
      return 0
    }
    if (isDry) return table.get(slot, field.dryUntil) - now
    if (now < table.get(slot, field.aloneUntil)) return this.#takeAlone(key, now)
    const debt = table.get(slot, field.debt)
    if (debt >= this.#mostDebt) return undefined
    table.set(slot, field.debt, debt + 1)
    return 0
  }

  #begin(slot: number, now: number): void {
    for (let n = 0; n < this.#table.fields; n++) this.#table.set(slot, n, 0)
    this.#table.set(slot, field.askedAt, now)
  }

  #need(slot: number, key: string): void {
    if (this.#table.get(slot, field.asking) !== 0) return
    this.#table.set(slot, field.asking, 1)
    this.#options.onNeed(key)
  }

  /** Tokens that the requests of a key take in a moment; no gateway takes more than a share of all. */
  #supply(slot: number): number {
    const most = Math.max(1, Math.floor(this.#options.limit.burst / (4 * this.#options.members())))
    return Math.min(most, Math.max(1, Math.ceil(this.#table.get(slot, field.pace) * supplyMs)))
  }

  #takeAlone(key: string, now: number): number {
    const { limit, rates, members } = this.#options
    const share = {
      requestsPerMinute: limit.requestsPerMinute / members(),
      burst: Math.max(1, Math.floor(limit.burst / members())),
    }
    return createRateLimiter(share, rates).take(key, now)
  }

  /**
   * What to ask for a key now; undefined when there is nothing to say and the key is forgotten. Each ask ends with `accept`
   * or `miss`.
   */
  ask(key: string, now: number): LeaseAsk | undefined {
    return this.#table.locked(() => {
      const slot = this.#table.find(key)
      return slot < 0 ? undefined : this.#askFor(slot, key, now)
    })
  }

  #askFor(slot: number, key: string, now: number): LeaseAsk | undefined {
    const table = this.#table
    this.#measure(slot, now)
    const isIdle = this.#isIdle(slot, now)
    if (isIdle) this.#spareAll(slot, now)
    const ask = {
      ...{ key, want: isIdle ? 0 : this.#supply(slot), used: table.get(slot, field.used) },
      ...{ returned: table.get(slot, field.spare), debt: table.get(slot, field.debt) },
      leasedAt: table.get(slot, field.leasedAt),
    }
    if (isIdle && ask.used + ask.returned + ask.debt === 0) {
      // While the bucket is known to be dry, no debt is allowed again.
      if (now >= table.get(slot, field.dryUntil)) table.release(slot)
      return undefined
    }
    table.set(slot, field.used, 0)
    table.set(slot, field.spare, 0)
    table.set(slot, field.asking, 1)
    return ask
  }

  /** Takes the answer to an ask that was sent at `sent`. Its debt was an allowance until now: there is new one after it. */
  accept({ key, debt }: LeaseAsk, { granted, wait, at }: LeaseAnswer, { sent, now }: Times): void {
    const table = this.#table
    table.locked(() => {
      const slot = table.find(key)
      if (slot < 0) return
      table.set(slot, field.asking, 0)
      table.set(slot, field.debt, table.get(slot, field.debt) - debt)
      table.set(slot, field.aloneUntil, 0)
      if (wait > 0) table.set(slot, field.dryUntil, now + wait)
      if (granted === 0 || now - sent > usableMs) return
      this.#spareAll(slot, now)
      table.set(slot, field.have, granted)
      table.set(slot, field.until, sent + usableMs)
      table.set(slot, field.leasedAt, at)
    })
  }

  /** The ask was not answered. What was used counts as leased until the bucket forgets it. */
  miss({ key }: LeaseAsk, now: number): void {
    this.#table.locked(() => {
      const slot = this.#table.find(key)
      if (slot < 0) return
      this.#table.set(slot, field.asking, 0)
      this.#table.set(slot, field.aloneUntil, now + aloneMs)
    })
  }

  /** Whether nobody has used the key for a while. */
  isIdle(key: string, now: number): boolean {
    const slot = this.#table.find(key)
    return slot < 0 || this.#isIdle(slot, now)
  }

  #isIdle(slot: number, now: number): boolean {
    return now - this.#table.get(slot, field.seenAt) > idleMs
  }

  /** The answer takes long: until it comes, this gateway limits the key by its own share. */
  goAlone(key: string, now: number): void {
    this.#table.locked(() => {
      const slot = this.#table.find(key)
      if (slot >= 0) this.#table.set(slot, field.aloneUntil, now + aloneMs)
    })
  }

  #spareAll(slot: number, now: number): void {
    const table = this.#table
    const left = now < table.get(slot, field.until) ? table.get(slot, field.have) : 0
    table.set(slot, field.spare, table.get(slot, field.spare) + left)
    table.set(slot, field.have, 0)
  }

  #measure(slot: number, now: number): void {
    const table = this.#table
    const passed = now - table.get(slot, field.askedAt)
    if (passed <= 0) return
    const pace = table.get(slot, field.pace)
    const fresh = table.get(slot, field.demand) / passed
    table.set(slot, field.pace, pace + (fresh - pace) * (1 - Math.exp(-passed / memoryMs)))
    table.set(slot, field.demand, 0)
    table.set(slot, field.askedAt, now)
  }
}
