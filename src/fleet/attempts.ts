/**
 * Attempts that all gateways of a fleet count together, such as logins: each takes a token of the bucket of its key, in
 * one call with all others that wait, one call at a time. Tokens of attempts that did not fail are given back.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseAsk } from '../limits/lease.ts'
import { inTime } from '../runtime/clock.ts'
import type { LeaseTokens } from './leases.ts'

/** Least time between two calls, milliseconds. */
const pauseMs = 10
/** An attempt waits so long for the answer, milliseconds: checking a secret takes about as long. */
const waitMs = 1_000
const maxKeys = 500
/** Maximum of keys that wait for a token: others are not asked for. The same for tokens that wait to be given back: other buckets fill by themselves. */
const maxWaiting = 10_000

type Take = (wait: number | undefined) => void

export interface AttemptsOptions {
  readonly lease: LeaseTokens
  /** Of each key in the database, where other kinds of buckets have keys, too. */
  readonly prefix: string
}

export class FleetAttempts {
  readonly #options: AttemptsOptions
  readonly #waiting = new Map<string, Take[]>()
  readonly #returned = new Map<string, number>()
  #isRunning = false

  constructor(options: AttemptsOptions) {
    this.#options = options
  }

  /** Takes a token: 0, or milliseconds until there is one. Undefined when the answer takes too long, or too many keys wait. */
  async take(key: string): Promise<number | undefined> {
    const others = this.#waiting.get(key)
    if (others === undefined && this.#waiting.size >= maxWaiting) return undefined
    const { promise, resolve } = Promise.withResolvers<number | undefined>()
    if (others === undefined) this.#waiting.set(key, [resolve])
    else others.push(resolve)
    this.#start()
    return inTime(promise, waitMs, () => undefined)
  }

  /** Gives a token back. When the call fails it is lost: the bucket fills by itself. */
  giveBack(key: string): void {
    const count = this.#returned.get(key) ?? 0
    if (count === 0 && this.#returned.size >= maxWaiting) return
    this.#returned.set(key, count + 1)
    this.#start()
  }

  #start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    // All attempts of this turn go with the first call.
    queueMicrotask(() => void this.#run())
  }

  async #run(): Promise<void> {
    while (this.#waiting.size + this.#returned.size > 0) {
      await this.#call([...new Set([...this.#waiting.keys(), ...this.#returned.keys()])].slice(0, maxKeys))
      await sleep(pauseMs, undefined, { ref: false })
    }
    this.#isRunning = false
  }

  async #call(keys: readonly string[]): Promise<void> {
    const { lease, prefix } = this.#options
    const taking = keys.map(key => taken(this.#waiting, key) ?? [])
    const asks = keys.map(
      (key, index): LeaseAsk => ({
        ...{ key: `${prefix}${key}`, want: taking[index]!.length, isSpent: true },
        ...{ used: 0, returned: 0, debt: -(taken(this.#returned, key) ?? 0), leasedAt: 0 },
      }),
    )
    // Without an answer each gateway limits by its own share.
    const answers = await lease(asks).catch(() => [])
    const byKey = new Map(answers.map(answer => [answer.key, answer]))
    for (const [index, { key }] of asks.entries()) {
      const answer = byKey.get(key)
      for (const [n, take] of taking[index]!.entries()) take(answer && (n < answer.granted ? 0 : answer.wait))
    }
  }
}

function taken<T>(from: Map<string, T>, key: string): T | undefined {
  const found = from.get(key)
  from.delete(key)
  return found
}
