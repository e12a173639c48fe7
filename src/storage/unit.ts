/**
 * What an operation that writes works with. Its own rows go through `db`. Audit entries and counts are only noted: the
 * engine writes them last, in the same transaction, because all gateways share the audit trail and the counts.
 */
import type { AuditEntry } from './audit.ts'
import type { Db } from './schema.ts'

export interface Unit {
  readonly db: Db
  /** Adds an entry to the audit trail. */
  audit(entry: AuditEntry): void
  /** More (or fewer) requests of the agent are pending. */
  count(agentId: string, change: number): void
}

/** A unit of work that remembers what was noted. */
export class Notes implements Unit {
  readonly db: Db
  readonly entries: AuditEntry[] = []
  /** Change of the number of pending requests, by agent. */
  readonly counts = new Map<string, number>()

  constructor(db: Db) {
    this.db = db
  }

  audit(entry: AuditEntry): void {
    this.entries.push(entry)
  }

  count(agentId: string, change: number): void {
    this.counts.set(agentId, (this.counts.get(agentId) ?? 0) + change)
  }
}
