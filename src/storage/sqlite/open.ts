import { randomUUID } from 'node:crypto'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import type { ThreadWatch } from '../../runtime/watchdog.ts'
import { createStore, type TableCall } from '../bind.ts'
import type { WebhookSubscription } from '../deliveries.ts'
import { Channel, type Channels, publish, reloadAll, type StoreChange } from '../feed.ts'
import type { TableName } from '../methods.ts'
import type { Store } from '../store.ts'
import { type Supervisor, superviseThread } from './supervisor.ts'

export interface SqliteOptions {
  /** Folder of gateway.db, relative to the working directory. Made, for its owner alone, when it is missing. */
  readonly directory: string
  readonly clock?: Clock
  /** Cap on the size of the database in pages of 4,096 bytes; writes past it fail like those on a full disk. */
  readonly maxPages?: number
  /** Time within which an operation is answered; 2 when absent. */
  readonly timeoutSeconds?: number
  /** Hooks for which events are left in the store. */
  readonly subscriptions?: readonly WebhookSubscription[]
  /** Lets the thread of the store watch this one. */
  readonly watch?: ThreadWatch | undefined
  /** Called with the reason why nothing more is written until a restart. */
  readonly onFault?: (why: string) => void
  /** Called with what was done because an older database was brought back. */
  readonly onRestored?: (what: string) => void
  /** Called when agents and policies, of which a change may have been missed, could not be read again. It is tried on. */
  readonly onStale?: (error: unknown) => void
}

/** Share of Storage:Sqlite:TimeoutSeconds that a call may take: operations of a few calls are then answered in time. */
const callShare = 0.75
/** Pause before agents and policies are read again when that failed, milliseconds. */
const reloadMs = 1_000

/**
 * The store on one SQLite file, in a thread of its own.
 * @throws StartupError when the folder cannot be written, or the file is damaged, newer, or in use
 */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const {
    directory,
    clock = systemClock,
    maxPages,
    timeoutSeconds = 2,
    subscriptions = [],
    watch,
    onFault = () => {},
    onRestored = () => {},
  } = options
  const onLost = (): void => feeds.reloadSoon()
  const callMs = timeoutSeconds * 1_000 * callShare
  const thread = superviseThread({ directory, maxPages, callMs, subscriptions, watch, onFault, onRestored, onLost })
  const feeds = new SqliteFeeds(thread, options.onStale)
  await thread.start()
  async function close(): Promise<void> {
    feeds.close()
    await thread.close()
  }
  return createStore({
    call: feeds.call,
    feed: feeds.channels,
    clock,
    subscribe: hooks => thread.subscribe(hooks),
    close,
  })
}

/** The feeds of the one gateway on a file: changes come with the replies of the storage thread. */
class SqliteFeeds {
  readonly channels: Channels
  #newest = 0
  readonly #thread: Supervisor
  readonly #onStale: (error: unknown) => void
  #reloading: NodeJS.Timeout | undefined

  constructor(thread: Supervisor, onStale: (error: unknown) => void = () => {}) {
    this.#thread = thread
    this.#onStale = onStale
    const epoch = randomUUID()
    const whole = <T>(table: TableName): Channel<T> =>
      // The method returns the rows.
      new Channel(onAll => thread.call({ table, method: 'all', args: [] }, ({ value }) => onAll(value as readonly T[])))
    this.channels = {
      agents: whole('agents'),
      policies: whole('policies'),
      credentials: whole('credentials'),
      tokens: whole('tokens'),
      grants: new Channel(async onAll => onAll(undefined)),
      // Events are not kept in the file. Some may have been missed: one number stands for them.
      events: new Channel(async onAll => onAll({ epoch, after: ++this.#newest, events: [] })),
    }
  }

  /** Makes a call. What it changes is in force when it resolves. */
  call: TableCall = (table, method, args) => {
    const waits: (Promise<unknown> | undefined)[] = []
    const answer = this.#thread.call({ table, method, args }, ({ changes }) => {
      for (const change of changes) waits.push(this.#publish(change))
    })
    return answer.then(value => (waits.length === 0 ? value : Promise.all(waits).then(() => value)))
  }

  #publish(change: StoreChange): Promise<unknown> | undefined {
    if (change.table !== 'events') return publish(this.channels, change)
    return publish(this.channels, { ...change, now: { ...change.now, seq: ++this.#newest } })
  }

  /** A revocation whose caller got a failure, and that is in the store all the same, holds from then on. */
  reloadSoon(): void {
    this.#reloading ??= setTimeout(() => this.#reload(), reloadMs).unref()
  }

  async #reload(): Promise<void> {
    this.#reloading = undefined
    try {
      await reloadAll(this.channels)
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
