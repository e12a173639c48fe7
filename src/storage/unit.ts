/**
 * What an operation that writes works with. Its own rows go through `db`. Audit entries, changes and counts are
 * only noted: the engine writes them last, in the same transaction, because all gateways share them.
 */
import type { AuditEntry } from './audit.ts'
import type { Change } from './feed.ts'
import type { Db } from './schema.ts'

export interface Unit {
  readonly db: Db
  /** Adds an entry to the audit trail. */
  audit(entry: AuditEntry): void
  /** Tells the followers of the feed. */
  change(change: Change): void
  /** More (or fewer) requests of the agent are pending. */
  count(agentId: string, change: number): void
}

/** A unit of work that remembers what was noted. */
export class Notes implements Unit {
  readonly db: Db
  readonly entries: AuditEntry[] = []
  readonly changes: Change[] = []
  /** Change of the number of pending requests, by agent. */
  readonly counts = new Map<string, number>()

  constructor(db: Db) {
    this.db = db
  }

  audit(entry: AuditEntry): void {
    this.entries.push(entry)
  }

  change(change: Change): void {
    this.changes.push(change)
  }

  count(agentId: string, change: number): void {
    this.counts.set(agentId, (this.counts.get(agentId) ?? 0) + change)
  }
}
