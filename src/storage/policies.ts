/** Policies in the storage contract. */
import type { AuditEntry } from './audit.ts'

/** A policy made over the API. Those from files are not stored. */
export interface PolicyRecord {
  readonly name: string
  /** The policy as JSON text, in the shape that GET /policies/{name} returns. */
  readonly document: string
  readonly createdAt: number
  readonly updatedAt: number
}

export interface PolicyTable {
  all(): Promise<readonly PolicyRecord[]>
  insert(policy: PolicyRecord, entry: AuditEntry): Promise<'stored' | 'exists'>
  /** @param from text of the record that is replaced; absent: any. `stale`: it is another one */
  update(policy: PolicyRecord, entry: AuditEntry, from?: string): Promise<'stored' | 'notFound' | 'stale'>
  /** `from` as in `update`. */
  remove(name: string, entry: AuditEntry, from?: string): Promise<'removed' | 'notFound' | 'stale'>
  /** All of them, whatever is stored under these names. */
  apply(edits: readonly PolicyEdit[]): Promise<void>
}

export interface PolicyEdit {
  readonly name: string
  /** Undefined removes it. `createdAt` of one that is stored stays. */
  readonly policy: PolicyRecord | undefined
  readonly entry: AuditEntry
}
