/** A start waits some time for a database that is slow, or restarts. What people must mend fails at once. */
import { setTimeout as sleep } from 'node:timers/promises'
import { asError } from '../../base/as-error.ts'
import { StartupError } from '../../base/refusals.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Feed, Feeds } from '../feed.ts'
import { StoreError } from '../store-error.ts'

/** Longest time after which a start still tries again, and the pause before that, milliseconds. */
export const startMs = 15_000
const pauseMs = 250

/**
 * What passes by itself: a time limit of the server (25P03, 55P03, 57014), a conflict with another transaction (40001,
 * 40P01), no free connection (53300), a server that stops or starts (57P01, 57P02, 57P03), a broken connection.
 */
const passing = new Set([
  ...['25P03', '55P03', '57014', '40001', '40P01', '53300', '57P01', '57P02', '57P03'],
  ...['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EAI_AGAIN'],
])
/** The driver has no codes for these. */
const broken = /^(connection terminated|timeout (expired|exceeded)|client (was closed|has encountered))/i

export class StartDeadline {
  readonly #clock: Clock
  readonly #end: number
  /** Something answered there: when it refuses connections, it restarts. */
  #answered = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.#end = clock.steady() + startMs
  }

  /**
   * Does work of a start, which may be done again when it fails.
   * @throws StartupError with one line
   */
  async for<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const value = await work()
        this.#answered = true
        return value
      } catch (error) {
        if (!this.#passes(error) || this.#clock.steady() > this.#end) throw asStartupError(error)
        await sleep(pauseMs)
      }
    }
  }

  /** All that is followed is followed from the start on. */
  with(feeds: Feeds): Feeds {
    const withinDeadline = (feed: Feed<unknown, unknown>): Feed<unknown, unknown> => ({
      follow: follower => this.for(() => feed.follow(follower)),
    })
    const all = Object.entries(feeds).map(([table, feed]) => [table, withinDeadline(feed)])
    // Each feed passes on what the one of its name does.
    return Object.fromEntries(all)
  }

  #passes(error: unknown): boolean {
    const cause = asError(error instanceof StartupError ? error.cause : error)
    const { code, message } = cause
    if (code === 'ECONNREFUSED') return this.#answered
    const isPassing = cause instanceof StoreError || (code === undefined ? broken.test(message) : passing.has(code))
    this.#answered ||= isPassing
    return isPassing
  }
}

const asStartupError = (error: unknown): StartupError =>
  error instanceof StartupError
    ? error
    : new StartupError(`The database failed during the start: ${asError(error).message}`, { cause: error })
