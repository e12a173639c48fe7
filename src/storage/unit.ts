/**
 * What an operation that writes works with. Its own rows go through `db`. Audit entries, changes and counts are
 * only noted: the engine writes them last, in the same transaction, because all gateways share them.
 */
import type { AuditEntry } from './audit.ts'
import type { Subscription } from './deliveries.ts'
import type { EventNote } from './events.ts'
import type { Change } from './feed.ts'
import type { Db } from './schema.ts'
import type { HitlLimits } from './store.ts'

export interface Room extends Pick<HitlLimits, 'maxPending' | 'maxPendingOfAgent'> {
  readonly agentId: string
  /** What has expired by then takes no room. */
  readonly now: number
}

export interface Unit {
  readonly db: Db
  /** Id of this gateway among those that share the store. No space. */
  readonly gateway: string
  /** Adds an entry to the audit trail. */
  audit(entry: AuditEntry): void
  /** Tells the followers of the feed. */
  change(change: Change): void
  /** Tells reviewers, webhooks and calls that wait. */
  event(event: EventNote): void
  /** More (or fewer) requests of the agent are pending. */
  count(agentId: string, change: number): void
  /** What was counted so far in this transaction: of one agent, or of all. */
  counted(agentId?: string): number
  /**
   * The counts must not exceed these limits, else nothing is done and the result is `queueFull` or `agentQueueFull`. For
   * engines where others write meanwhile: a check in the operation itself, which saves the work, is not certain there.
   */
  room(room: Room): void
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

/** A unit of work that remembers what was noted. No other operation runs meanwhile. */
export class Notes implements Unit {
  readonly db: Db
  /** Hooks for which events are left in the store. */
  readonly subscriptions: readonly Subscription[]
  readonly gateway: string
  readonly entries: AuditEntry[] = []
  readonly changes: Change[] = []
  /** Change of the number of pending requests, by agent. */
  readonly counts = new Map<string, number>()

  /** Statements that were sent, and not waited for. */
  readonly sent: Promise<unknown>[] = []

  limits: Room | undefined

  constructor(db: Db, subscriptions: readonly Subscription[] = [], gateway = 'alone') {
    this.db = db
    this.subscriptions = subscriptions
    this.gateway = gateway
  }

  audit(entry: AuditEntry): void {
    this.entries.push(entry)
  }

  change(change: Change): void {
    this.changes.push(change)
  }

  event(event: EventNote): void {
    this.changes.push({ table: 'events', key: event.hitlId ?? event.data.agentId, now: event })
  }

  count(agentId: string, change: number): void {
    this.counts.set(agentId, (this.counts.get(agentId) ?? 0) + change)
  }

  counted(agentId?: string): number {
    return this.countedHere(agentId)
  }

  countedHere(agentId?: string): number {
    if (agentId !== undefined) return this.counts.get(agentId) ?? 0
    return [...this.counts.values()].reduce((sum, change) => sum + change, 0)
  }

  room(room: Room): void {
    this.limits = room
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
