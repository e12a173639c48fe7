/**
 * The part of one gateway in rate limits that hold for a fleet. A bucket of tokens for each key is kept in the database.
 * A gateway leases tokens from it ahead of need, and requests take them from memory that all of its threads share: no
 * request waits for the database while its agent keeps calling. If an ask is not answered within a second, the gateway
 * limits by a share of its own, a bucket of `burst / members` and `pace / members`, until one is, and charges the bucket
 * with what it let pass.
 *
 * In any time W all gateways together admit at most `burst + pace * W + members * debt`, and for each of them that limited
 * by its share `burst / members + pace / members * gap` more. `gap` is the longest time from the sending of an ask that
 * reached the bucket to the arrival of the next one there.
 *
 * Proof. Let P be the tokens in the bucket and on lease, less the requests that passed without a token and are not charged
 * yet. Each request takes one from P, a charge changes nothing in it, and it gains `pace` at most while it is below `burst`.
 * So W admits at most `burst + pace * W` and as many as P is below 0 at the end. Let x be the time when the tokens of the
 * bucket last were 0 or more. Below 0 are then at most those without a token that were charged since x, or are not charged
 * yet, less `pace` for the time since x. Those of one gateway passed after it sent its last ask before x, at most `gap`
 * before x. They are `debt`, and those that its share let pass: `burst / members`, and `pace / members` for the time since.
 * For the time since x, that is no more in all gateways than the bucket gained. What remains is the bound.
 *
 * A bucket that is full gains nothing, which would make a long outage cost more than it gave. So a charge has two parts.
 * `own` is what the share has not regained: it came at once. The rest, `paced`, is taken from what the bucket gained since
 * the last ask of any gateway before the bucket is cut off at `burst`. P stays within `burst`: a share lacks at least what
 * it let pass in any time up to now beyond its pace, so `own` takes at least what requests at the end of the outage took
 * from a full bucket.
 *
 * A charge whose answer is lost may be made twice; then less is admitted.
 */
import { type LeaseAnswer, type LeaseAsk, leaseMs, usableMs } from './lease.ts'
import type { SharedTable, TableShape } from './shared-table.ts'
import { createRateLimiter, type RateLimit, type RateLimiter } from './token-bucket.ts'

/** New tokens are asked for so long before the present ones expire, milliseconds. */
const aheadMs = 300
/** A gateway leases the tokens that its requests take in this time, milliseconds. */
const supplyMs = 400
/** Time constant of the measured demand, milliseconds. */
const memoryMs = 500
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
  requestAt: 9,
  /** 1 while an ask is wanted or under way. */
  asking: 10,
  leasedAt: 11,
  /** 1 while this gateway limits by its own share, since the bucket does not answer in time. */
  alone: 12,
  /** Requests that the share let pass, and that may not be reported to the bucket yet. */
  own: 13,
} as const

/** Its table: 14 MiB, of which the system provides only what is used. More active keys than that must wait. */
export const leaseShape: TableShape = { slots: 131_072, fields: 14 }

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
  limit: RateLimit
  readonly #options: LeasedBucketsOptions
  readonly #table: SharedTable

  constructor(options: LeasedBucketsOptions) {
    this.limit = options.limit
    this.#options = options
    this.#table = options.leases
  }

  get #interval(): number {
    return 60_000 / this.limit.requestsPerMinute
  }

  /** Requests that pass without a token while the bucket is asked. */
  get #maxDebt(): number {
    return Math.max(1, Math.floor(this.limit.burst / 100))
  }

  /** Takes one request. 0 when it may pass; milliseconds until it may; undefined when the bucket must be asked first. */
  take(key: string, now: number): number | undefined {
    const table = this.#table
    table.lock()
    try {
      const slot = table.claim(key, other => this.#isForgotten(other, now))
      return slot < 0 ? this.#interval : this.#takeFrom(slot, key, now)
    } finally {
      table.unlock()
    }
  }

  #isForgotten(slot: number, now: number): boolean {
    const table = this.#table
    return table.get(slot, field.requestAt) < now - 2 * leaseMs && table.get(slot, field.own) === 0
  }

  #takeFrom(slot: number, key: string, now: number): number | undefined {
    const table = this.#table
    if (table.get(slot, field.have) === Number.NEGATIVE_INFINITY) this.#begin(slot, now)
    table.set(slot, field.requestAt, now)
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
    if (table.get(slot, field.alone) !== 0) return this.#takeAlone(slot, key, now)
    const debt = table.get(slot, field.debt)
    if (debt >= this.#maxDebt) return undefined
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
    const max = Math.max(1, Math.floor(this.limit.burst / (4 * this.#options.members())))
    return Math.min(max, Math.max(1, Math.ceil(this.#table.get(slot, field.pace) * supplyMs)))
  }

  #takeAlone(slot: number, key: string, now: number): number {
    const wait = this.#share().take(key, now)
    if (wait === 0) this.#table.set(slot, field.own, this.#table.get(slot, field.own) + 1)
    return wait
  }

  #share(): RateLimiter {
    const { limit } = this
    const { rates, members } = this.#options
    const requestsPerMinute = limit.requestsPerMinute / members()
    return createRateLimiter({ requestsPerMinute, burst: Math.max(1, Math.floor(limit.burst / members())) }, rates)
  }

  /**
   * The ask for a key; undefined when there is nothing to report and the key is forgotten. Each ask ends with `accept` or
   * `miss`.
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
    const isAlone = table.get(slot, field.alone) !== 0
    const all = table.get(slot, field.own)
    // The part that the share has not regained yet came out of its burst.
    const own = all === 0 ? 0 : Math.min(all, Math.ceil(this.#share().owed(key, now)))
    const ask = {
      // Alone, one token says that answers come in time again: more would be held in vain.
      ...{ key, want: isIdle ? 0 : isAlone ? 1 : this.#supply(slot), used: table.get(slot, field.used) },
      ...{ returned: table.get(slot, field.spare), debt: table.get(slot, field.debt), own, paced: all - own },
      leasedAt: table.get(slot, field.leasedAt),
    }
    if (isIdle && ask.used + ask.returned + ask.debt + all === 0) {
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
  accept(ask: LeaseAsk, { granted, wait, at }: LeaseAnswer, { sent, now }: Times): void {
    const { key, debt, own = 0, paced = 0 } = ask
    const table = this.#table
    table.locked(() => {
      const slot = table.find(key)
      if (slot < 0) return
      table.set(slot, field.asking, 0)
      table.set(slot, field.debt, table.get(slot, field.debt) - debt)
      table.set(slot, field.own, table.get(slot, field.own) - own - paced)
      table.set(slot, field.alone, now - sent > usableMs ? 1 : 0)
      if (wait > 0) table.set(slot, field.dryUntil, now + wait)
      if (granted === 0 || now - sent > usableMs) return
      this.#spareAll(slot, now)
      table.set(slot, field.have, granted)
      table.set(slot, field.until, sent + usableMs)
      table.set(slot, field.leasedAt, at)
    })
  }

  /** The ask was not answered. The used tokens count as leased until the bucket forgets them. */
  miss({ key }: LeaseAsk): void {
    this.#table.locked(() => {
      const slot = this.#table.find(key)
      if (slot < 0) return
      this.#table.set(slot, field.asking, 0)
      this.#table.set(slot, field.alone, 1)
    })
  }

  /** Whether nobody has used the key for a while, so that its tokens are given back. */
  isDue(key: string, now: number): boolean {
    const slot = this.#table.find(key)
    return slot < 0 || this.#isIdle(slot, now)
  }

  #isIdle(slot: number, now: number): boolean {
    return now - this.#table.get(slot, field.requestAt) > idleMs
  }

  /** The answer takes long: until it comes, this gateway limits the key by its own share. */
  goAlone(key: string): void {
    this.#table.locked(() => {
      const slot = this.#table.find(key)
      if (slot >= 0) this.#table.set(slot, field.alone, 1)
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
