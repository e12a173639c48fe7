import { keysOf } from '../../base/records.ts'
import { type Clock, systemClock } from '../../clock.ts'
import { Channel } from '../feed.ts'
import { methods, type TableName, type Tables } from '../methods.ts'
import type { AgentRecord, PolicyRecord, Store } from '../store.ts'
import type { Done } from './protocol.ts'
import { Supervisor } from './supervisor.ts'

export interface SqliteOptions {
  /** Folder of gateway.db, relative to the working directory. Made, for its owner alone, when it is missing. */
  readonly directory: string
  readonly clock?: Clock
  /** Cap on the size of the database in pages of 4,096 bytes; writes past it fail like those on a full disk. */
  readonly maxPages?: number
  /** Called with the reason why nothing more is written until a restart. */
  readonly onFault?: (why: string) => void
  /** Called with what was done because an older database was brought back. */
  readonly onRestored?: (what: string) => void
  /** Called when agents and policies, of which a change may have been missed, could not be read again. It is tried on. */
  readonly onStale?: (error: unknown) => void
}

/** Milliseconds that a successful probe counts for: one that asks for health all the time costs no disk writes. */
const probeHolds = 1_000
/** Pause before agents and policies are read again when that failed, milliseconds. */
const reloadMs = 1_000

type Call = (table: TableName, method: string, args: readonly unknown[]) => Promise<unknown>

/**
 * The store on one SQLite file, in a thread of its own.
 * @throws StartupError when the folder cannot be written, or the file is damaged, newer, or in use
 */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { directory, clock = systemClock, maxPages, onFault = () => {}, onRestored = () => {} } = options
  const health = createHealth(clock)
  const onLost = (): void => feeds.reloadSoon()
  const thread = new Supervisor({ directory, maxPages, onFault, onRestored, onLost })
  const feeds = new SqliteFeeds(thread, options.onStale)
  await thread.start()
  const { probe, ...tables } = bind((table, method, args) => health.watch(feeds.call(table, method, args)))
  return {
    ...tables,
    feed: feeds,
    ping: () => health.check(() => probe.ping()),
    async close() {
      feeds.close()
      await thread.close()
    },
  }
}

/** The feeds of the one gateway on a file: changes come with the replies of the storage thread. */
class SqliteFeeds {
  readonly agents: Channel<AgentRecord>
  readonly policies: Channel<PolicyRecord>
  readonly #thread: Supervisor
  readonly #onStale: (error: unknown) => void
  #reloading: NodeJS.Timeout | undefined

  constructor(thread: Supervisor, onStale: (error: unknown) => void = () => {}) {
    this.#thread = thread
    this.#onStale = onStale
    this.agents = new Channel(seen => thread.call({ table: 'agents', method: 'all', args: [] }, rowsTo(seen)))
    this.policies = new Channel(seen => thread.call({ table: 'policies', method: 'all', args: [] }, rowsTo(seen)))
  }

  /** Makes a call. What it changes is in force when it resolves. */
  call: Call = async (table, method, args) => {
    const waits: (Promise<unknown> | undefined)[] = []
    const value = await this.#thread.call({ table, method, args }, ({ changes }) => {
      for (const change of changes) {
        if (change.table === 'agents') waits.push(this.agents.publish(change.key, change.now))
        else waits.push(this.policies.publish(change.key, change.now))
      }
    })
    if (waits.length > 0) await Promise.all(waits)
    return value
  }

  /** A revocation whose caller got a failure, and that is in the store all the same, holds from then on. */
  reloadSoon(): void {
    this.#reloading ??= setTimeout(() => this.#reload(), reloadMs).unref()
  }

  async #reload(): Promise<void> {
    this.#reloading = undefined
    try {
      await this.agents.reload()
      await this.policies.reload()
    } catch (error) {
      if (this.#thread.closed) return
      this.#onStale(error)
      this.reloadSoon()
    }
  }

  close(): void {
    clearTimeout(this.#reloading)
  }
}

/** Passes on the rows of a method that reads all of a table. */
function rowsTo<T>(seen: (all: readonly T[]) => void): (done: Done) => void {
  // The method that is called returns them.
  return ({ value }) => seen(value as readonly T[])
}

/** The tables of the contract, each method sent through `call`. */
function bind(call: Call): Tables {
  const tables = keysOf(methods).map(table => {
    const names = Object.keys(methods[table])
    const bound = names.map(name => [name, (...args: unknown[]) => call(table, name, args)])
    return [table, Object.fromEntries(bound)]
  })
  return Object.fromEntries(tables)
}

/** The health of the store, by its calls, and by probes when there are none. */
function createHealth(clock: Clock) {
  let goodUntil = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined
  const noteFailure = (): void => {
    goodUntil = Number.NEGATIVE_INFINITY
  }
  async function run(probe: () => Promise<void>): Promise<void> {
    await probe()
    goodUntil = clock.steady() + probeHolds
  }
  return {
    /** A call that fails makes the success of the last probe void. */
    watch<T>(call: Promise<T>): Promise<T> {
      call.catch(noteFailure)
      return call
    },
    /** Concurrent callers share one run of `probe`; a success holds for a second. */
    async check(probe: () => Promise<void>): Promise<void> {
      if (clock.steady() < goodUntil) return
      running ??= run(probe).finally(() => {
        running = undefined
      })
      return running
    },
  }
}
