/**
 * One link of the audit trail's hash chain: canonical JSON (RFC 8785: keys sorted, no spaces) under SHA-256.
 */
import { hash } from 'node:crypto'
import { canonicalJson } from '../base/json.ts'
import type { AuditEntry, AuditRecord } from './store.ts'

/** `previous` of the first record. */
export const genesis = '0'.repeat(64)

/** The hash that `record` must carry: SHA-256, hex, over `previous` and the canonical JSON of all but the hashes. */
export function hashOf(record: Omit<AuditRecord, 'hash'>): string {
  const { previous, seq, at, actor, action, subject, requestId, details } = record
  const told = { seq, at, actor, action, subject, requestId, details }
  return hash('sha256', previous + canonicalJson(told), 'hex')
}

/** The record that follows `last` in the chain. Text is made storable first, so that it reads back as hashed. */
export function link(entry: AuditEntry, last: Pick<AuditRecord, 'seq' | 'hash'> | undefined): AuditRecord {
  const record = {
    seq: (last?.seq ?? 0) + 1,
    at: entry.at,
    actor: entry.actor.toWellFormed(),
    action: entry.action.toWellFormed(),
    subject: entry.subject.toWellFormed(),
    requestId: entry.requestId?.toWellFormed() ?? null,
    details: JSON.parse(JSON.stringify(entry.details)),
    previous: last?.hash ?? genesis,
  }
  return { ...record, hash: hashOf(record) }
}
