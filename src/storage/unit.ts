/**
 * What an operation that writes works with. Its own rows go through `db`. Audit entries, changes and counts are
 * only noted: the engine writes them last, in the same transaction, because all gateways share them.
 */
import type { AuditEntry } from './audit.ts'
import type { WebhookSubscription } from './deliveries.ts'
import type { EventNote } from './events.ts'
import type { StoreChange } from './feed.ts'
import type { Db } from './schema.ts'
import type { HitlLimits } from './store.ts'

/** What one agent, or all of them, have in the queue. */
export interface HeldTotals {
  /** Requests that are pending. */
  readonly waiting: number
  /** Stored of requests, decided ones too. */
  readonly bytes: number
}

export interface SpaceRequest extends Omit<HitlLimits, 'joinsSince'> {
  readonly agentId: string
  /** Items that have expired by then take no space. */
  readonly now: number
}

export interface Unit {
  readonly db: Db
  /** Id of this gateway among those that share the store. No space. */
  readonly gateway: string
  audit(entry: AuditEntry): void
  /** Tells the followers of the feed. */
  change(change: StoreChange): void
  /** Tells reviewers, webhooks and calls that wait. */
  event(event: EventNote): void
  /**
   * More (or fewer) requests of the agent are pending. Bytes are those of a new one: later changes of `hitl.bytes` count by
   * themselves.
   */
  count(agentId: string, change: Partial<HeldTotals>): void
  /** What was counted so far in this transaction: of one agent, or of all. */
  counted(agentId?: string): HeldTotals
  /**
   * The counts must not exceed these limits, else nothing is done and the result is the `Full` of the first of them. For
   * engines where others write meanwhile: a check in the operation itself, which saves the work, is not certain there.
   */
  requireSpace(requireSpace: SpaceRequest): void
  /** Waits for other operations with one of these keys. First of all: nothing that was read before may be relied on. */
  alone(...keys: readonly string[]): Promise<void> | undefined
  /** From here on what others do at the same time may make it fail: operations that share its transaction must not. */
  mayFail(): void
  /** Whether no other operation works under the key; none begins to before this one is committed. */
  tryAlone(key: string): Promise<boolean>
  /**
   * The answer of a statement does not matter to the operation, so it is not waited for: it fails the operation when it
   * fails, and is done before the commit.
   */
  send(statement: Promise<unknown>): void
}

const nothing: HeldTotals = { waiting: 0, bytes: 0 }

export function sumOf(tallies: readonly HeldTotals[]): HeldTotals {
  let [waiting, bytes] = [0, 0]
  for (const tally of tallies) {
    waiting += tally.waiting
    bytes += tally.bytes
  }
  return { waiting, bytes }
}

/** A unit of work that remembers what was noted. No other operation runs meanwhile. */
export class WriteNotes implements Unit {
  readonly db: Db
  /** Hooks for which events are left in the store. */
  readonly subscriptions: readonly WebhookSubscription[]
  readonly gateway: string
  readonly entries: AuditEntry[] = []
  readonly changes: StoreChange[] = []
  /** By agent. */
  readonly counts = new Map<string, HeldTotals>()

  /** Statements that were sent, and not waited for. */
  readonly sent: Promise<unknown>[] = []

  limits: SpaceRequest | undefined

  constructor(db: Db, subscriptions: readonly WebhookSubscription[] = [], gateway = 'alone') {
    this.db = db
    this.subscriptions = subscriptions
    this.gateway = gateway
  }

  audit(entry: AuditEntry): void {
    this.entries.push(entry)
  }

  change(change: StoreChange): void {
    this.changes.push(change)
  }

  event(event: EventNote): void {
    this.changes.push({ table: 'events', key: event.hitlId ?? event.data.agentId, now: event })
  }

  count(agentId: string, change: Partial<HeldTotals>): void {
    this.counts.set(agentId, sumOf([this.countedHere(agentId), { ...nothing, ...change }]))
  }

  counted(agentId?: string): HeldTotals {
    return this.countedHere(agentId)
  }

  countedHere(agentId?: string): HeldTotals {
    return agentId === undefined ? sumOf([...this.counts.values()]) : (this.counts.get(agentId) ?? nothing)
  }

  requireSpace(requireSpace: SpaceRequest): void {
    this.limits = requireSpace
  }

  alone(..._keys: readonly string[]): Promise<void> | undefined {
    return undefined
  }

  mayFail(): void {}

  async tryAlone(_key: string): Promise<boolean> {
    return true
  }

  send(statement: Promise<unknown>): void {
    // Looked at before the commit; Node must not take it for forgotten until then.
    statement.catch(() => {})
    this.sent.push(statement)
  }
}
