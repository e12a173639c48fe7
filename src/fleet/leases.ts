/** Leases amounts for this gateway, such as tokens of rate limits: all keys that need some in one call, one call at a time. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { LeaseAnswer, LeaseAsk, TokenLeases } from '../limits/lease.ts'
import { type Clock, inTime } from '../runtime/clock.ts'

/** Least time between two calls, milliseconds. */
const pauseMs = 10
/** The same after a call that failed. */
const failedMs = 500
/** Time between two looks for keys that nobody uses any more, milliseconds. */
const sweepMs = 250
const maxKeys = 500

/** Asks the buckets of the fleet. */
export type LeaseTokens = (asks: readonly LeaseAsk[]) => Promise<readonly LeaseAnswer[]>

interface Keyed {
  readonly key: string
}

/** What this gateway has leased. All times are steady milliseconds. */
export interface LeaseBook<A extends Keyed, R extends Keyed> {
  /** Undefined when there is nothing to report, and the key is forgotten. Each ask ends with `accept` or `miss`. */
  ask(key: string, now: number): A | undefined
  accept(ask: A, answer: R, times: { readonly sent: number; readonly now: number }): void
  miss(ask: A): void
  /** The answer takes long. */
  goAlone(key: string): void
  /** Whether a key that nobody needs is to be asked for, since there is something to report or to give back. */
  isDue(key: string, now: number): boolean
}

export interface LeasesOptions<A extends Keyed, R extends Keyed> {
  readonly book: LeaseBook<A, R>
  readonly lease: (asks: readonly A[]) => Promise<readonly R[]>
  readonly clock: Clock
  /**
   * Requests wait so long for a call that is under way, or about to begin, milliseconds: after a pause nothing is leased, and
   * to refuse the first request then would be wrong while the store answers. Once it is late, nobody waits until it answers in
   * time.
   */
  readonly lateMs: number
}

export class Leases<A extends Keyed, R extends Keyed> implements TokenLeases {
  readonly #options: LeasesOptions<A, R>
  /** Keys that this gateway holds tokens of, or has something to say about. */
  readonly #keys = new Set<string>()
  #needed = new Set<string>()
  /** Keys whose calls fail while the store answers others: when each may be asked for again, which it is alone. */
  readonly #faulty = new Map<string, number>()
  /** The last call was for one of them. */
  #wasAlone = false
  /** The last call failed, or took too long: requests do not wait for the next ones until one is answered in time. */
  #isAway = false
  /** The call that is under way, or the next one, is over. */
  #next = Promise.withResolvers<void>()
  /** What all requests that wait for it wait for, and their keys. */
  #wait: Promise<void> | undefined
  readonly #waiting = new Set<string>()
  #running: Promise<void> | undefined
  #isClosed = false
  readonly #sweeper: NodeJS.Timeout

  constructor(options: LeasesOptions<A, R>) {
    this.#options = options
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs).unref()
  }

  get keys(): ReadonlySet<string> {
    return this.#keys
  }

  need(key: string): void {
    this.#keys.add(key)
    this.#needed.add(key)
    // All that one turn of the event loop brings shares the first call.
    if (!this.#isClosed) this.#running ??= nextTurn().then(() => this.#run())
  }

  /** When it takes too long, this gateway goes alone. */
  asked(key: string): Promise<void> {
    this.need(key)
    this.#waiting.add(key)
    if (!this.#isAway) {
      this.#wait ??= inTime(this.#next.promise, this.#options.lateMs + 2 * pauseMs, () => this.#goAlone())
      return this.#wait
    }
    this.#goAlone()
    return Promise.resolve()
  }

  #goAlone(): void {
    this.#isAway = true
    // It is over, and the store may answer in time before the call is: those that come then wait for it anew.
    this.#wait = undefined
    for (const key of this.#waiting) this.#options.book.goAlone(key)
    this.#waiting.clear()
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#sweeper)
  }

  /** Reports and gives back what is due, and closes. */
  async finish(): Promise<void> {
    clearInterval(this.#sweeper)
    this.#sweep()
    await this.#running
    this.close()
  }

  async #run(): Promise<void> {
    while (this.#needed.size > 0 && !this.#isClosed) {
      const isAnswered = await this.#ask(this.#takeNeeded())
      const { resolve } = this.#next
      this.#next = Promise.withResolvers()
      this.#wait = undefined
      this.#waiting.clear()
      resolve()
      await sleep(isAnswered ? pauseMs : failedMs, undefined, { ref: false })
    }
    this.#running = undefined
  }

  /** Keys for one call, which are no longer needed then. */
  #takeNeeded(): readonly string[] {
    const all = [...this.#needed]
    const now = this.#options.clock.steady()
    const alone = this.#wasAlone ? undefined : all.find(key => (this.#faulty.get(key) ?? Number.MAX_VALUE) <= now)
    this.#wasAlone = alone !== undefined
    const keys = alone === undefined ? all.filter(key => !this.#faulty.has(key)).slice(0, maxKeys) : [alone]
    for (const key of keys) this.#needed.delete(key)
    return keys
  }

  /**
   * Whether the store answers. When it does, and the call fails all the same, one of the keys is the cause: it must not take
   * leases from other agents. It is found by halves.
   */
  async #ask(keys: readonly string[]): Promise<boolean> {
    if (await this.#call(keys)) return true
    if (!(await this.#isReached())) return false
    const [only] = keys
    if (only !== undefined && keys.length === 1) {
      this.#faulty.set(only, this.#options.clock.steady() + failedMs)
      return true
    }
    const half = Math.ceil(keys.length / 2)
    return (await this.#ask(keys.slice(0, half))) && (await this.#ask(keys.slice(half)))
  }

  /** Whether a call without keys is answered. Until it is, each gateway goes alone. */
  async #isReached(): Promise<boolean> {
    const sent = this.#options.clock.steady()
    this.#isAway = await this.#options.lease([]).then(
      () => this.#isLate(sent),
      () => true,
    )
    return !this.#isAway
  }

  #isLate(sent: number): boolean {
    const { clock, lateMs } = this.#options
    return clock.steady() - sent > lateMs
  }

  async #call(keys: readonly string[]): Promise<boolean> {
    const { book, lease, clock } = this.#options
    const sent = clock.steady()
    const asks: A[] = []
    for (const key of keys) {
      const ask = book.ask(key, sent)
      if (ask === undefined) this.#keys.delete(key)
      else asks.push(ask)
    }
    try {
      const answers = asks.length === 0 ? [] : await lease(asks)
      const byKey = new Map(answers.map(answer => [answer.key, answer]))
      const now = clock.steady()
      for (const ask of asks) {
        const answer = byKey.get(ask.key)
        if (answer === undefined) book.miss(ask)
        else book.accept(ask, answer, { sent, now })
      }
      this.#isAway = this.#isLate(sent)
      for (const key of keys) this.#faulty.delete(key)
      return true
    } catch {
      for (const ask of asks) book.miss(ask)
      return false
    }
  }

  #sweep(): void {
    const now = this.#options.clock.steady()
    for (const key of this.#keys) if (this.#options.book.isDue(key, now)) this.need(key)
  }
}
