import { asError } from '../../base/as-error.ts'
import { type Clock, inTime, systemClock } from '../../clock.ts'
import { createStore } from '../bind.ts'
import { isWrite } from '../methods.ts'
import { type Asked, run } from '../operations.ts'
import { type Store, StoreError } from '../store.ts'
import { type Attempt, type CommitParts, type Committed, commit, resolveDoubt } from './commit.ts'
import { Connections } from './connection.ts'
import { PostgresFeeds } from './feed.ts'
import { prepareDatabase } from './migrate.ts'
import type { PostgresSettings } from './settings.ts'

export interface PostgresOptions {
  readonly settings: PostgresSettings
  readonly clock?: Clock
  /** Called when changes of agents and policies cannot be read. It is tried on. */
  readonly onStale?: (error: unknown) => void
}

/** Longest time that a call takes, milliseconds: operations of a few calls are then answered within two seconds. */
const callMs = 1_500
/** Pause before the outcome of a write in doubt is asked for again, milliseconds. */
const doubtMs = 1_000

/**
 * The store on a PostgreSQL database.
 * @throws StartupError when the database cannot be reached or used
 */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const { settings, clock = systemClock, onStale = () => {} } = options
  const connections = new Connections(settings)
  const feeds = new PostgresFeeds({ settings, connections, onStale })
  const calls = new PostgresCalls({ connections, clock }, feeds)
  try {
    await prepareDatabase(connections, settings)
    await feeds.start()
  } catch (error) {
    await connections.close()
    throw error
  }
  async function close(): Promise<void> {
    await calls.close()
    await feeds.close()
    await connections.close()
  }
  return createStore({ call: (table, method, args) => calls.call({ table, method, args }), feed: feeds, clock, close })
}

class PostgresCalls {
  readonly #parts: CommitParts
  readonly #feeds: PostgresFeeds
  readonly #running = new Set<Promise<unknown>>()
  #closed = false

  constructor(parts: CommitParts, feeds: PostgresFeeds) {
    this.#parts = parts
    this.#feeds = feeds
  }

  /** @throws StoreError when the call failed or took too long */
  async call(asked: Asked): Promise<unknown> {
    if (this.#closed) throw new StoreError('The store is closed')
    const call = isWrite(asked) ? this.#write(asked) : this.#read(asked)
    const settled: Promise<unknown> = call.catch(() => {}).then(() => this.#running.delete(settled))
    this.#running.add(settled)
    return call
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#running)
  }

  async #write(asked: Asked): Promise<unknown> {
    const attempt: Attempt = { client: undefined, writeId: undefined, givenUp: false }
    const committed = await this.#attempt(asked, attempt, () => commit(this.#parts, asked, attempt))
    if (committed.changes > 0) await this.#inForce(committed)
    return committed.value
  }

  async #read(asked: Asked): Promise<unknown> {
    const { connections } = this.#parts
    const attempt: Attempt = { client: undefined, writeId: undefined, givenUp: false }
    return this.#attempt(asked, attempt, async () => {
      const client = await connections.acquire()
      attempt.client = client
      let broken = true
      try {
        const value = await run(connections.over(client), asked)
        broken = false
        return value
      } finally {
        attempt.client = undefined
        client.release(broken)
      }
    })
  }

  /** Does the work within the time of a call. What is given up is never done later, unless its COMMIT has left. */
  async #attempt<T>({ table, method }: Asked, attempt: Attempt, work: () => Promise<T>): Promise<T> {
    try {
      return await inTime(work(), callMs, () => {
        throw new StoreError('it took too long')
      })
    } catch (error) {
      attempt.givenUp = true
      // Ends the connection at once when a statement is under way.
      void attempt.client?.end().catch(() => {})
      const { writeId } = attempt
      if (writeId !== undefined) void this.#resolve(writeId)
      const outcome = writeId === undefined ? '' : '; whether it was done is unknown'
      const message = `${table}.${method}: ${asError(error).message}${outcome}`
      throw new StoreError(message, { cause: error, inDoubt: writeId !== undefined })
    }
  }

  /** A change is answered when it is in force; if it was recorded, but is not in force in time, that is in doubt. */
  async #inForce({ last, changes }: Committed): Promise<void> {
    this.#feeds.wake()
    const numbers = Array.from({ length: changes }, (_, index) => (last ?? 0) - index)
    await Promise.all(numbers.map(number => this.#feeds.until(number, callMs)))
  }

  /** Makes sure that a write whose answer was lost is not committed later. If it was, the feed tells of it. */
  async #resolve(writeId: string): Promise<void> {
    while (!this.#closed) {
      const known = await resolveDoubt(this.#parts, writeId).catch(() => undefined)
      if (known !== undefined) return
      await new Promise(resolve => setTimeout(resolve, doubtMs).unref())
    }
  }
}
