import { randomUUID } from 'node:crypto'
import { type Clock, systemClock } from '../../runtime/clock.ts'
import type { ThreadWatch } from '../../runtime/watchdog.ts'
import { createStore, type TableCall } from '../bind.ts'
import type { CredentialVersion } from '../credentials.ts'
import type { WebhookSubscription } from '../deliveries.ts'
import type { EventHistory, StoredEvent } from '../events.ts'
import { Channel, type StoreChange } from '../feed.ts'
import type { AgentRecord, PolicyRecord, Store } from '../store.ts'
import type { Done } from './protocol.ts'
import { Supervisor } from './supervisor.ts'

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
  const thread = new Supervisor({ directory, maxPages, callMs, subscriptions, watch, onFault, onRestored, onLost })
  const feeds = new SqliteFeeds(thread, options.onStale)
  await thread.start()
  async function close(): Promise<void> {
    feeds.close()
    await thread.close()
  }
  return createStore({ call: feeds.call, feed: feeds, clock, subscribe: hooks => thread.subscribe(hooks), close })
}

/** The feeds of the one gateway on a file: changes come with the replies of the storage thread. */
class SqliteFeeds {
  readonly agents: Channel<AgentRecord>
  readonly policies: Channel<PolicyRecord>
  readonly credentials: Channel<CredentialVersion>
  readonly tokens: Channel<string>
  readonly grants: Channel<never, undefined>
  readonly events: Channel<StoredEvent, EventHistory>
  readonly #epoch = randomUUID()
  #newest = 0
  readonly #thread: Supervisor
  readonly #onStale: (error: unknown) => void
  #reloading: NodeJS.Timeout | undefined

  constructor(thread: Supervisor, onStale: (error: unknown) => void = () => {}) {
    this.#thread = thread
    this.#onStale = onStale
    this.agents = new Channel(onReply => thread.call({ table: 'agents', method: 'all', args: [] }, rowsTo(onReply)))
    this.policies = new Channel(onReply => thread.call({ table: 'policies', method: 'all', args: [] }, rowsTo(onReply)))
    this.credentials = new Channel(onReply =>
      thread.call({ table: 'credentials', method: 'all', args: [] }, rowsTo(onReply)),
    )
    this.tokens = new Channel(onReply => thread.call({ table: 'tokens', method: 'all', args: [] }, rowsTo(onReply)))
    this.grants = new Channel(async onReply => onReply(undefined))
    // Events are not kept in the file. Some may have been missed: one number stands for them.
    this.events = new Channel(async onReply => onReply({ epoch: this.#epoch, after: ++this.#newest, events: [] }))
  }

  /** Makes a call. What it changes is in force when it resolves. */
  call: TableCall = (table, method, args) => {
    const waits: (Promise<unknown> | undefined)[] = []
    const answer = this.#thread.call({ table, method, args }, ({ changes }) => {
      for (const change of changes) waits.push(this.#publish(change))
    })
    return answer.then(value => (waits.length === 0 ? value : Promise.all(waits).then(() => value)))
  }

  #publish({ table, key, now }: StoreChange): Promise<unknown> | undefined {
    if (table === 'agents') return this.agents.publish(key, now)
    if (table === 'policies') return this.policies.publish(key, now)
    if (table === 'credentials') return this.credentials.publish(key, now)
    if (table === 'tokens') return this.tokens.publish(key, now)
    if (table === 'grants') return this.grants.publish(key, now)
    return this.events.publish(key, { ...now, seq: ++this.#newest })
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
      await this.credentials.reload()
      await this.tokens.reload()
      await this.grants.reload()
      await this.events.reload()
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
function rowsTo<T>(onReply: (all: readonly T[]) => void): (done: Done) => void {
  // The method that is called returns them.
  return ({ value }) => onReply(value as readonly T[])
}
