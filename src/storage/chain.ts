/**
 * One link of the audit trail's hash chain: canonical JSON (RFC 8785: keys sorted, no spaces) under SHA-256.
 */
import { hash } from 'node:crypto'
import { canonicalJson } from '../base/json.ts'
import type { AuditRow } from './schema.ts'
import type { AuditEntry, AuditRecord, ChainLink } from './store.ts'

type Chained = Pick<AuditRecord, 'seq' | 'previous' | 'hash'>

/** `previous` of the first record. */
export const genesis = '0'.repeat(64)

/** The hash that `record` must carry: SHA-256, hex, over `previous` and the canonical JSON of all but the hashes. */
export function hashOf(record: Omit<AuditRecord, 'hash'>): string {
  const { previous, seq, at, actor, action, subject, requestId, details } = record
  const hashed = { seq, at, actor, action, subject, requestId, details }
  return hash('sha256', previous + canonicalJson(hashed), 'hex')
}

/**
 * The same of a row as it is stored: its details are canonical JSON already, and to parse and sort them takes three times as
 * long as all the rest. Of details that were written in another way it is another hash.
 */
export function hashOfStored(row: Omit<AuditRow, 'hash'>): string {
  const { previous, seq, at, details } = row
  const [action, actor, requestId, subject] = [row.action, row.actor, row.requestId, row.subject].map(toJson)
  const hashed = `{"action":${action},"actor":${actor},"at":${at},"details":${details},"requestId":${requestId},"seq":${seq},"subject":${subject}}`
  return hash('sha256', previous + hashed, 'hex')
}

const toJson = (value: string | null): string => JSON.stringify(value)

/**
 * Why `record` is not the one that follows `before`; undefined when it is.
 *
 * @param expected the hash that it must carry
 */
export function faultOf(record: Chained, before: ChainLink, expected: string): string | undefined {
  const seq = before.seq + 1
  if (record.seq !== seq) return `record ${seq} is missing`
  if (record.previous !== before.hash) return `record ${seq} does not follow from the one before it`
  if (record.hash !== expected) return `record ${seq} was changed after it was written`
  return undefined
}

/** Text as every engine stores it: well-formed, and without U+0000, which PostgreSQL does not have. */
function storable(text: string): string {
  const wellFormed = text.toWellFormed()
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\ufffd') : wellFormed
}

/** A parameter of a statement. */
export const bindable = (value: unknown): unknown => (typeof value === 'string' ? storable(value) : value)

/** An entry as it reads back: its hash covers this. */
export function toStorable(entry: AuditEntry): AuditEntry {
  return {
    at: entry.at,
    actor: storable(entry.actor),
    action: storable(entry.action),
    subject: storable(entry.subject),
    requestId: entry.requestId === null ? null : storable(entry.requestId),
    details: JSON.parse(JSON.stringify(entry.details)),
  }
}

/** The row of the record that follows `last` in the chain. */
export function link(entry: AuditEntry, last: ChainLink | undefined): AuditRow {
  const { details, ...hashed } = toStorable(entry)
  const link = { seq: (last?.seq ?? 0) + 1, previous: last?.hash ?? genesis }
  const row = { ...hashed, ...link, details: canonicalJson(details) }
  return { ...row, hash: hashOfStored(row) }
}
