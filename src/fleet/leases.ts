/** Leases tokens of rate limits for this gateway: all keys that need some in one call, one call at a time. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type LeaseAnswer, type LeaseAsk, type TokenLeases, usableMs } from '../limits/lease.ts'
import type { LeasedBuckets } from '../limits/leased-bucket.ts'
import { type Clock, inTime } from '../runtime/clock.ts'

/** Least time between two calls, milliseconds. */
const pauseMs = 10
/** The same after a call that failed. */
const failedMs = 500
/** A request waits so long for a call that is under way, or about to begin, milliseconds. */
const waitMs = usableMs + 2 * pauseMs
/** Time between two looks for keys that nobody uses any more, milliseconds. */
const sweepMs = 250
/** Maximum of keys in a call. */
const maxKeys = 500

/** Asks the buckets of the fleet. */
export type LeaseTokens = (asks: readonly LeaseAsk[]) => Promise<readonly LeaseAnswer[]>

export interface LeasesOptions {
  readonly buckets: Pick<LeasedBuckets, 'ask' | 'accept' | 'miss' | 'goAlone' | 'isIdle'>
  readonly lease: LeaseTokens
  readonly clock: Clock
}

export class Leases implements TokenLeases {
  readonly #options: LeasesOptions
  /** Keys that this gateway holds tokens of, or has something to say about. */
  readonly #keys = new Set<string>()
  #needed = new Set<string>()
  /** The last call failed, or took too long: requests do not wait for the next ones until one is answered in time. */
  #isAway = false
  /** The call that is under way, or the next one, is over. */
  #next = Promise.withResolvers<void>()
  #isRunning = false
  #isClosed = false
  readonly #sweeper: NodeJS.Timeout

  constructor(options: LeasesOptions) {
    this.#options = options
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs).unref()
  }

  need(key: string): void {
    this.#keys.add(key)
    this.#needed.add(key)
    if (this.#isRunning || this.#isClosed) return
    this.#isRunning = true
    void Promise.resolve().then(() => this.#run())
  }

  /** When it takes too long, this gateway limits by its own share. */
  asked(key: string): Promise<void> {
    this.need(key)
    const goAlone = () => {
      this.#isAway = true
      this.#options.buckets.goAlone(key)
    }
    if (!this.#isAway) return inTime(this.#next.promise, waitMs, goAlone)
    goAlone()
    return Promise.resolve()
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#sweeper)
  }

  async #run(): Promise<void> {
    while (this.#needed.size > 0 && !this.#isClosed) {
      const keys = [...this.#needed].slice(0, maxKeys)
      for (const key of keys) this.#needed.delete(key)
      const isAnswered = await this.#call(keys)
      const { resolve } = this.#next
      this.#next = Promise.withResolvers()
      resolve()
      await sleep(isAnswered ? pauseMs : failedMs, undefined, { ref: false })
    }
    this.#isRunning = false
  }

  /** Whether it was answered. */
  async #call(keys: readonly string[]): Promise<boolean> {
    const { buckets, lease, clock } = this.#options
    const sent = clock.steady()
    const asks: LeaseAsk[] = []
    for (const key of keys) {
      const ask = buckets.ask(key, sent)
      if (ask === undefined) this.#keys.delete(key)
      else asks.push(ask)
    }
    try {
      const answers = asks.length === 0 ? [] : await lease(asks)
      const byKey = new Map(answers.map(answer => [answer.key, answer]))
      const now = clock.steady()
      for (const ask of asks) {
        const answer = byKey.get(ask.key)
        if (answer === undefined) buckets.miss(ask)
        else buckets.accept(ask, answer, { sent, now })
      }
      this.#isAway = now - sent > usableMs
      return true
    } catch {
      // The store reports that it cannot be reached. Until it can, each gateway limits by its own share.
      this.#isAway = true
      for (const ask of asks) buckets.miss(ask)
      return false
    }
  }

  #sweep(): void {
    const now = this.#options.clock.steady()
    for (const key of this.#keys) if (this.#options.buckets.isIdle(key, now)) this.need(key)
  }
}
