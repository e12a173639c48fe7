import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { PoolClient } from 'pg'
import { asError } from '../../base/as-error.ts'
import { FleetClock } from '../../fleet/clock.ts'
import { Fence } from '../../fleet/fence.ts'
import type { GatewayReport } from '../../fleet/peers.ts'
import type { Terms } from '../../fleet/terms.ts'
import type { FleetReading } from '../../fleet/view.ts'
import type { LeaseAnswer, LeaseCall } from '../../limits/lease.ts'
import { type Clock, inTime, systemClock } from '../../runtime/clock.ts'
import { ownVersion } from '../../runtime/version.ts'
import { createStore } from '../bind.ts'
import type { WebhookSubscription } from '../deliveries.ts'
import { isWrite } from '../methods.ts'
import { run, type StoreOperation } from '../operations.ts'
import { type CallerKind, type Store, StoreError } from '../store.ts'
import { Batches } from './batches.ts'
import { type Board, createBoard } from './board.ts'
import { commit, resolveDoubt, stateOf } from './commit.ts'
import { lostState } from './commit-write.ts'
import { type ConnectionCounts, cutOff, DatabaseConnections } from './connection.ts'
import { PostgresFeeds } from './feed.ts'
import { StoreHistory } from './history.ts'
import type { LossOptions } from './loss.ts'
import type { Self } from './member.ts'
import { prepareDatabase } from './migrate.ts'
import { leaseTokens } from './rates.ts'
import { type PostgresSettings, timeoutOf } from './settings.ts'
import { assertSpace } from './space.ts'
import { createSpendLeases } from './spend.ts'
import { StartDeadline } from './start-deadline.ts'
import type { CommitParts, Committed, TransactionAttempt } from './transaction.ts'
import { undoOf } from './undo.ts'
import { callerOf, shareOf } from './write-share.ts'

export interface PostgresOptions {
  readonly settings: PostgresSettings
  /** The time of the database when absent. */
  readonly clock?: Clock
  /** Hooks for which events are left in the store. */
  readonly subscriptions?: readonly WebhookSubscription[]
  /** UUID of this process; a random one when absent. */
  readonly id?: string
  /** How this gateway is called in lists of all of them, and its version. */
  readonly name?: string
  readonly version?: string
  /** Why a schema must not be created now; absent when it may. */
  readonly whyNotNew?: string | undefined
  /** How long this gateway serves when it cannot take a turn, milliseconds; the same in all of them. */
  readonly fenceMs?: number
  /** Fingerprints of its keys; none when it is opened for a short work. */
  readonly keys?: Pick<Terms, 'signs' | 'accepts'>
  /** Of the fence; the system's. */
  readonly fenceClock?: Clock
  /** Called when changes of agents and policies cannot be read. It is tried on. */
  readonly onStale?: (error: unknown) => void
  /** What happens when the database has lost history; all gateways stop to serve when absent. */
  readonly onLoss?: LossOptions
}

export interface SharedStore extends Store {
  readonly fence: Fence
  /** Shows the other gateways what need not be exact. */
  readonly board: Board
  /** What this gateway knows of all that share the database. */
  fleet(): FleetReading
  connections(): ConnectionCounts
  /** Tells the others something of this gateway. */
  publish(what: Partial<GatewayReport>): void
  /** Leases tokens of rate limits that all gateways share. */
  lease(call: LeaseCall): Promise<readonly LeaseAnswer[]>
  /** Resolves when this gateway may serve. Call it once agents and policies are followed. */
  untilOpen(): Promise<void>
}

/** Share of Storage:PostgreSQL:TimeoutSeconds that a call may take: operations of a few calls are then answered in time. */
const callShare = 0.75
const ignoreLoss: LossOptions = { accept: false, onLost() {}, onAccepted() {} }
/** Pause before the outcome of a write in doubt is asked for again, milliseconds. */
const doubtMs = 1_000

/**
 * The store on a PostgreSQL database.
 * @throws StartupError when the database cannot be reached or used
 */
export async function openPostgresStore(options: PostgresOptions): Promise<SharedStore> {
  const { settings, fenceClock = systemClock, clock = new FleetClock(fenceClock), onStale = () => {} } = options
  const { name = hostname(), version = ownVersion(), fenceMs = 10_000, keys = { signs: [], accepts: [] } } = options
  const { id = randomUUID(), subscriptions = [], onLoss = ignoreLoss } = options
  const history = new StoreHistory()
  const deadline = new StartDeadline(fenceClock)
  const fleetClock = clock instanceof FleetClock ? clock : undefined
  const callMs = timeoutOf(settings) * callShare
  const connections = new DatabaseConnections(settings)
  const fence = new Fence(fenceClock, fenceMs)
  const report: GatewayReport = { digests: {}, addresses: [] }
  const self: Self = { id, name, version, started: clock.now(), fenceMs, ...keys, report }
  const feeds = new PostgresFeeds({
    ...{ settings, connections, clock: fenceClock, self, fence, history, fleetClock, onStale, onLoss },
  })
  const { poolSize } = settings
  const parts = { connections, clock, subscriptions, fenceClock, callMs, poolSize, history, gateway: self.id }
  const calls = new PostgresCalls(parts, feeds)
  async function closeAll(): Promise<void> {
    // Idle connections do not keep the process running; it would end before they are closed.
    const held = setInterval(() => {}, callMs)
    feeds.leave()
    await calls.close()
    await feeds.close()
    await connections.close()
    clearInterval(held)
  }
  try {
    const { whyNotNew } = options
    await deadline.for(() => prepareDatabase({ connections, settings, version, whyNotNew }))
    await deadline.for(() => feeds.start())
  } catch (error) {
    await closeAll()
    throw error
  }
  let closing: Promise<void> | undefined
  function close(): Promise<void> {
    closing ??= closeAll()
    return closing
  }
  const store = createStore({
    call: (table, method, args) => calls.call({ table, method, args }),
    feed: deadline.with(feeds.channels),
    clock,
    close,
    async subscribe(hooks) {
      parts.subscriptions = hooks
    },
    assertSpace: () => assertSpace(connections, callMs),
  })
  function publish(what: Partial<GatewayReport>): void {
    self.report = { ...self.report, ...what }
  }
  const lease = (call: LeaseCall) => leaseTokens(connections, call)
  const board = createBoard(connections, self.id, callMs)
  const untilOpen = () => deadline.for(() => feeds.open())
  const spend = { ...store.spend, ...createSpendLeases(connections, self.id) }
  const asked = { fleet: () => feeds.fleet, connections: () => connections.counts }
  return { ...store, ...asked, spend, fence, board, publish, lease, untilOpen }
}

interface PostgresCallParts extends CommitParts {
  readonly fenceClock: Clock
  /** Longest time that a call takes, milliseconds. */
  readonly callMs: number
  readonly poolSize: number
}

class PostgresCalls {
  readonly #parts: PostgresCallParts
  readonly #feeds: PostgresFeeds
  readonly #batches: Readonly<Record<CallerKind, Batches>>
  /** Whether transactions were committed whose COMMIT was not answered. */
  readonly #doubts = new Map<string, Promise<boolean>>()
  readonly #running = new Set<Promise<unknown>>()
  #closed = false

  constructor(parts: PostgresCallParts, feeds: PostgresFeeds) {
    this.#parts = parts
    this.#feeds = feeds
    // With the batch of each, half of the connections stay free for other calls.
    const half = Math.max(1, Math.floor((parts.poolSize - 1) / 2))
    this.#batches = { agents: new Batches(parts, half), people: new Batches(parts, half) }
  }

  /** @throws StoreError when the call failed or took too long */
  async call(asked: StoreOperation): Promise<unknown> {
    if (this.#closed) throw new StoreError('The store is closed')
    const call = isWrite(asked) ? this.#write(asked) : this.#read(asked)
    const done: Promise<unknown> = call.catch(() => {}).then(() => this.#running.delete(done))
    this.#running.add(done)
    return call
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.#running)
  }

  async #write(asked: StoreOperation): Promise<unknown> {
    const attempt = attemptOf(asked)
    const { share } = attempt
    const committed = await this.#attempt(attempt, () =>
      share === undefined ? commit(this.#parts, attempt) : this.#batches[attempt.of].commit(attempt, share),
    )
    if (committed.wake !== undefined) this.#feeds.wake(committed.wake)
    if (committed.awaited.length > 0) await this.#inForce(committed)
    return committed.value
  }

  async #read(asked: StoreOperation): Promise<unknown> {
    const { connections } = this.#parts
    const attempt = attemptOf(asked)
    const read = (client: PoolClient) => {
      attempt.stop = () => cutOff(client)
      return run(connections.over(client), asked).finally(() => {
        attempt.stop = undefined
      })
    }
    return this.#attempt(attempt, () => connections.use(read, attempt.of))
  }

  /** Does the work within the time of a call. What is given up is never done later, unless its COMMIT has left. */
  async #attempt<T>(attempt: TransactionAttempt, work: () => Promise<T>): Promise<T> {
    const { asked } = attempt
    const { table, method } = asked
    try {
      return await inTime(work(), this.#parts.callMs, () => {
        throw new StoreError('it took too long')
      })
    } catch (error) {
      attempt.givenUp = true
      if (stateOf(error) === lostState) this.#feeds.look()
      attempt.stop?.()
      const { writeId } = attempt
      if (writeId !== undefined) void this.#resolve(writeId, asked, attempt.value)
      const outcome = writeId === undefined ? '' : '; whether it was done is unknown'
      const message = `${table}.${method}: ${asError(error).message}${outcome}`
      throw new StoreError(message, { cause: error, inDoubt: writeId !== undefined })
    }
  }

  /** A change is answered when it is in force; if it was recorded, but is not in force in time, that is in doubt. */
  async #inForce({ awaited }: Committed): Promise<void> {
    const answered = this.#parts.fenceClock.steady()
    await Promise.all(awaited.map(change => this.#feeds.until({ change, answered })))
  }

  /** Makes sure that a write whose answer was lost is not committed later. If it was, its caller does not act on it. */
  async #resolve(writeId: string, asked: StoreOperation, value: unknown): Promise<void> {
    let mayBeDone = false
    while (!this.#closed) {
      const isCommitted = await this.#outcome(writeId).catch(() => undefined)
      const now = this.#parts.clock.now()
      const undo = isCommitted ? undoOf(asked, value, now, mayBeDone) : undefined
      const outcome = undo === undefined ? 'done' : await this.#takeBack(undo)
      if (isCommitted !== undefined && outcome === 'done') return
      if (outcome === 'inDoubt') mayBeDone = true
      await new Promise(resolve => setTimeout(resolve, doubtMs).unref())
    }
  }

  /** Asked for once for all writes of the transaction. */
  #outcome(writeId: string): Promise<boolean> {
    const asked = this.#doubts.get(writeId)
    if (asked !== undefined) return asked
    const outcome = resolveDoubt(this.#parts, writeId).finally(() => this.#doubts.delete(writeId))
    this.#doubts.set(writeId, outcome)
    return outcome
  }

  async #takeBack(undo: StoreOperation): Promise<'done' | 'failed' | 'inDoubt'> {
    return this.#write(undo).then(
      () => 'done',
      (error: unknown) => (error instanceof StoreError && error.inDoubt ? 'inDoubt' : 'failed'),
    )
  }
}

function attemptOf(asked: StoreOperation): TransactionAttempt {
  const share = shareOf(asked)
  return { asked, share, of: share?.of ?? callerOf(asked), stop: undefined, writeId: undefined, givenUp: false }
}
