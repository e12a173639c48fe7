/**
 * The feed over the table of changes. A turn reads the changes since the last one, and shows the other gateways that this
 * one lives and how far it has got: twice a second, when a notification wakes it, and after each own commit.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { forgetOldest } from '../../base/records.ts'
import { StartupError } from '../../base/refusals.ts'
import type { FleetClock } from '../../fleet/clock.ts'
import type { Fence } from '../../fleet/fence.ts'
import { type AwaitedChange, type MemberRow, Peers } from '../../fleet/peers.ts'
import type { FleetReading } from '../../fleet/view.ts'
import { type Clock, inTime } from '../../runtime/clock.ts'
import { type Channels, isAwaited, reloadAll } from '../feed.ts'
import { StoreError } from '../store-error.ts'
import { canDecide, createChannels, publishRow } from './channels.ts'
import { coalesce } from './coalesce.ts'
import type { DatabaseConnections } from './connection.ts'
import type { StoreHistory } from './history.ts'
import { createLossHandler, type LossOptions, lostHistory } from './loss.ts'
import { Member, type Self } from './member.ts'
import type { PostgresSettings } from './settings.ts'
import { type FeedRow, prunes, takeTurn } from './turn.ts'
import { FeedTurns, type TurnClient, type Wake } from './turns.ts'

/** Time between two turns, milliseconds. */
export const turnMs = 500
/** Latest changes whose followers may still be waited for. */
const maxKept = 1_000
/** Shortest time between two turns for events, milliseconds: each is a commit. */
const eventsMs = 20
/** Turns between removals of old changes. */
const turnsToPrune = 120
/** Pauses between looks whether all gateways have a change, milliseconds; the last one is repeated. */
export const pausesMs = [4, 6, 9, 14, 20, 30, 50]

/** A change and its commit, of one history. */
interface Passed {
  readonly seq: number
  readonly write: string | null
}

/** What the followers do about a change. In an object: a promise is not waited for by passing it on. */
interface PendingReport {
  readonly inForce: Promise<unknown> | undefined
}

export interface PostgresFeedsOptions {
  readonly settings: PostgresSettings
  readonly connections: DatabaseConnections
  readonly clock: Clock
  readonly self: Self
  readonly fence: Fence
  readonly history: StoreHistory
  readonly fleetClock: FleetClock | undefined
  /** Called when changes cannot be read; it is tried on. */
  readonly onStale: (error: unknown) => void
  readonly onLoss: LossOptions
}

export class PostgresFeeds {
  readonly channels: Channels
  readonly #options: PostgresFeedsOptions
  readonly #turns: FeedTurns
  readonly #peers: Peers<MemberRow>
  readonly #member: Member
  readonly #loss: ReturnType<typeof createLossHandler>
  /** Every change up to this one was passed on. */
  #passed: Passed = { seq: -1, write: null }
  #applied = -1
  /** The latest change that others may wait for. */
  #awaited = -1
  readonly #inForce = new Map<number, Promise<unknown>>()
  readonly #waiting = new Map<number, (pending: PendingReport) => void>()
  /** Turns and loads, one at a time. */
  #queue: Promise<unknown> = Promise.resolve()
  /** The turn that has not begun yet. */
  #next: Promise<void> | undefined
  /** Changes that followers are still putting in force, and the turns that wait for them. */
  readonly #open = new Set<Promise<unknown>>()
  #confirming: Promise<unknown> = Promise.resolve()
  /** When the last turn asked. */
  #sent = 0
  /** At first: what the first turn fails with is thrown. */
  #failing = true
  #timer: NodeJS.Timeout | undefined
  #count = 0
  readonly #wakeForEvents: () => void
  /** Rejects when nobody waits for other gateways any more. */
  readonly #left = Promise.withResolvers<never>()
  #closed = false

  constructor(options: PostgresFeedsOptions) {
    this.#options = options
    const { settings, self, fence, clock, onLoss } = options
    this.channels = createChannels(options.connections, work => this.#enqueue(work))
    const lookForEvents = coalesce(eventsMs, () => this.look())
    const onWake = (why: Wake) => (why === 'events' ? lookForEvents() : this.look())
    this.#turns = new FeedTurns({ settings, clock, limitMs: fence.limitMs / 3, onWake })
    this.#wakeForEvents = coalesce(eventsMs, () => this.#turns.wake('events'))
    this.#peers = new Peers(self.id, fence.limitMs)
    this.#member = new Member(self, this.#peers)
    this.#loss = createLossHandler(options, onLoss)
    this.#left.promise.catch(() => {})
  }

  get fleet(): FleetReading {
    const { self, clock } = this.#options
    const { all: peers, fencedAfter } = this.#peers
    const known = { newest: this.#passed.seq, applied: this.#applied, turnMs: this.#turns.lastMs }
    return { self: self.id, peers, ...known, fencedAfter, at: clock.steady() }
  }

  /** @throws what kept the first turn from being done */
  async start(): Promise<void> {
    await this.#member.join(() => this.#look())
    this.#timer = setInterval(() => this.look(), turnMs).unref()
  }

  /** Resolves when this gateway may serve. */
  async open(): Promise<void> {
    const { fence, history } = this.#options
    while (!this.#closed && !fence.isOpen) {
      await this.#look()
      await this.#confirming
      if (history.lost !== undefined) throw new StartupError(lostHistory(history.lost))
    }
  }

  /** Resolves when this change is in force in every gateway that serves, this one among them. */
  async until(what: AwaitedChange): Promise<void> {
    const { change } = what
    const pending = change <= this.#passed.seq ? { inForce: this.#inForce.get(change) } : await this.#untilPassed(what)
    await pending.inForce
    await this.#untilEverywhere(what)
  }

  /** Takes a turn soon. */
  look(): void {
    this.#look().catch(() => {})
  }

  /** Wakes all gateways. Nothing is lost when it does not reach them. */
  wake(why: Wake): void {
    if (why === 'events') this.#wakeForEvents()
    else this.#turns.wake('changes')
  }

  /** Nobody waits for other gateways any more. */
  leave(): void {
    this.#left.reject(new StoreError('closed before every gateway had the change', { inDoubt: true }))
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#queue
    this.#options.fence.drop()
    await this.#turns.run(client => this.#member.leave(client)).catch(() => {})
    await this.#turns.close()
  }

  /** Without the database this gateway does not get its own change; then it is fenced, as all others are, in the end. */
  #untilPassed(what: AwaitedChange): Promise<PendingReport> {
    const passed = new Promise<PendingReport>(resolve => this.#waiting.set(what.change, resolve))
    this.look()
    const fencedIn = this.#peers.fencedIn(what, this.#options.clock.steady())
    return inTime(Promise.race([passed, this.#left.promise]), fencedIn, () => {
      this.#waiting.delete(what.change)
      return { inForce: undefined }
    })
  }

  /** The turn that brought the change was the first look. */
  async #untilEverywhere(what: AwaitedChange): Promise<void> {
    for (let looks = 0; !this.#peers.isEverywhere(what, this.#sent); looks++) {
      // Without the database only time counts: every gateway has the change by then, or is fenced.
      const ms = this.#peers.fencedIn(what, this.#options.clock.steady())
      if (ms < 0) return
      const look = sleep(pausesMs[looks] ?? pausesMs.at(-1)).then(() => this.#look().catch(() => {}))
      await inTime(Promise.race([look, this.#left.promise]), ms, () => {})
    }
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }

  /** Takes a turn that begins from now on. */
  #look(): Promise<void> {
    this.#next ??= this.#enqueue(() => {
      this.#next = undefined
      return this.#turn()
    })
    return this.#next
  }

  async #turn(): Promise<void> {
    if (this.#closed) return
    try {
      await this.#turns.run(client => this.#readOn(client))
      this.#failing = false
    } catch (error) {
      if (!this.#failing && !this.#closed) this.#options.onStale(error)
      this.#failing = true
      throw error
    }
  }

  async #readOn(client: TurnClient): Promise<void> {
    const { self, fence, clock, history, fleetClock } = this.#options
    const reported = canDecide(this.channels) ? this.#applied : -1
    for (;;) {
      const begun = fence.begin()
      const { seq: passed, write: passedBy } = this.#passed
      const state = { id: self.id, applied: reported, passed, passedBy, history, served: fence.isOpen, fleetClock }
      const turn = await takeTurn(client, state)
      const { alive, list, members } = turn
      const newest = { seq: turn.newest, write: turn.write }
      this.#peers.saw(members, clock.steady())
      this.#sent = begun.steady
      if (alive === 0) fence.drop()
      const past = history.take(turn)
      if (past === 'lost') return this.#loss.lose(client, turn)
      this.#loss.end()
      // At once: a turn that fails from here on must not leave changes of one history with the epoch of another.
      if (past === 'new') this.#reload(newest)
      else this.#passOn(newest, list)
      if (alive === 0) await this.#member.register(client, begun.steady)
      if (this.#passed.seq < newest.seq) continue
      this.#confirming = this.#confirmed(newest, alive !== 0 && reported >= 0 ? () => fence.confirm(begun) : () => {})
      return this.#tidy(client, begun.steady)
    }
  }

  /** Confirms to the others once all changes of this turn are in force. */
  #confirmed(newest: Passed, confirm: () => void): Promise<unknown> {
    return Promise.all([this.#confirming, ...this.#open]).then(
      () => {
        const isNew = this.#awaited > this.#applied
        this.#applied = newest.seq
        confirm()
        if (isNew && this.#peers.count > 1) this.look()
      },
      error => {
        this.#options.onStale(error)
        this.#reload(newest)
      },
    )
  }

  #passOn(newest: Passed, list: readonly FeedRow[]): void {
    if (this.#passed.seq < 0) this.#passed = newest
    else if (hasGap(this.#passed.seq, newest.seq, list)) this.#reload(newest)
    else for (const row of list) this.#apply(row)
  }

  #apply(row: FeedRow): void {
    const inForce = publishRow(this.channels, row)
    if (isAwaited(row)) this.#awaited = row.seq
    this.#keep(row, inForce)
    this.#waiting.get(row.seq)?.({ inForce })
    this.#waiting.delete(row.seq)
  }

  #keep({ seq, write }: Passed, inForce: Promise<unknown> | undefined): void {
    this.#passed = { seq, write }
    if (inForce === undefined) return
    this.#inForce.set(seq, inForce)
    forgetOldest(this.#inForce, maxKept)
    this.#open.add(inForce)
    inForce.catch(() => {}).finally(() => this.#open.delete(inForce))
  }

  /** Changes were removed that this gateway has not seen, or were lost. */
  #reload(newest: Passed): void {
    this.#options.fence.drop()
    // Others need not wait for it meanwhile. A number of a history that was lost would say that it has changes to come.
    this.#applied = -1
    const inForce = reloadAll(this.channels)
    this.#awaited = newest.seq
    this.#keep(newest, inForce)
    for (const [seq, resolve] of this.#waiting) if (seq <= newest.seq) resolve({ inForce })
  }

  /** Removes rows of gateways that are gone, and old changes; keeps the own row up to date. */
  async #tidy(client: TurnClient, sent: number): Promise<void> {
    await this.#member.tidy(client, sent)
    if (this.#count++ % turnsToPrune !== 0) return
    for (const prune of prunes) await client.query(prune)
  }
}

/** Whether changes are missing behind the last one that was passed on. */
function hasGap(passed: number, newest: number, list: readonly FeedRow[]): boolean {
  return list.some(({ seq }, index) => seq !== passed + 1 + index) || (list.length === 0 && newest > passed)
}
