import { resolve } from 'node:path'
import { keysOf } from '../../base/records.ts'
import { type Clock, inTime, systemClock } from '../../clock.ts'
import { methods, type TableName, type Tables } from '../methods.ts'
import { type Store, StoreError } from '../store.ts'
import { startThread, type Thread } from './thread.ts'

export interface SqliteOptions {
  /** Folder of gateway.db, relative to the working directory. Made, for its owner alone, when it is missing. */
  readonly directory: string
  readonly clock?: Clock
  /** Cap on the size of the database in pages of 4,096 bytes; writes past it fail like those on a full disk. */
  readonly maxPages?: number
  /** Called with the reason why nothing is written any more until a restart. */
  readonly onFault?: (why: string) => void
  /** Called with what was done because an older database was brought back. */
  readonly onRestored?: (what: string) => void
}

/** Milliseconds that a successful probe counts for: one that asks for health all the time costs no disk writes. */
const probeHolds = 1_000
/** Longest wait of a call for a thread that is started again, milliseconds. */
const startMs = 1_500

type Call = (table: TableName, method: string, args: readonly unknown[]) => Promise<unknown>

/**
 * The store on one SQLite file, in a thread of its own. A thread that dies is started again by the next call.
 * @throws StartupError when the folder cannot be written, or the file is damaged, newer, or in use
 */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { directory, clock = systemClock, maxPages, onFault = () => {}, onRestored = () => {} } = options
  const health = createHealth(clock)
  let doubts = 0
  let thread: Thread | undefined
  let starting: Promise<Thread> | undefined
  let closed = false

  async function start(): Promise<Thread> {
    const started = await startThread({
      directory: resolve(directory),
      maxPages,
      onFault,
      onRestored,
      onDoubt: () => {
        doubts += 1
      },
    })
    thread = started
    void started.ended.then(() => {
      thread = undefined
    })
    return started
  }

  async function restart(): Promise<Thread> {
    starting ??= start().finally(() => {
      starting = undefined
    })
    return inTime(starting, startMs, () => Promise.reject(new Error('The storage does not start'))).catch(error => {
      throw new StoreError(error.message, { cause: error })
    })
  }

  async function close(): Promise<void> {
    closed = true
    await starting?.catch(() => undefined)
    await thread?.close()
  }

  await start()
  const { probe, ...tables } = bind(async (table, method, args) => {
    if (closed) throw new StoreError('The store is closed')
    // No wait while the thread runs: calls reach it in the order they were made, `close` after them.
    const running = thread ?? (await restart())
    return health.watch(running.call({ table, method, args }))
  })
  return { ...tables, ping: () => health.check(() => probe.ping()), doubts: () => doubts, close }
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
