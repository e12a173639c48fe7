import type { ExpressionBuilder } from 'kysely'
import { canonicalJson } from '../../base/json.ts'
import { faultOf, link } from '../chain.ts'
import type { Operations } from '../methods.ts'
import type { AuditRow, Db, Schema } from '../schema.ts'
import { columns, statement } from '../statement.ts'
import type { AuditEntry, AuditFilter, AuditRecord } from '../store.ts'

const selectLast = statement(db => db.selectFrom('audit').select(['seq', 'hash']).orderBy('seq', 'desc').limit(1))

const auditColumns = [
  'seq',
  'at',
  'actor',
  'action',
  'subject',
  'requestId',
  'details',
  'previous',
  'hash',
] as const satisfies (keyof AuditRow)[]

const insert = statement((db, row: AuditRow) => db.insertInto('audit').values(columns(row, auditColumns)))

/** Adds `entries` in their order, in the transaction that `db` is in. */
export async function append(db: Db, entries: readonly AuditEntry[]): Promise<void> {
  const { rows } = await selectLast(db, {})
  let last: Pick<AuditRecord, 'seq' | 'hash'> | undefined = rows[0]
  for (const entry of entries) {
    const record = link(entry, last)
    await insert(db, { ...record, details: canonicalJson(record.details) })
    last = record
  }
}

/** `entry` with facts that only the store knows. */
export function withFacts(entry: AuditEntry, facts: AuditEntry['details']): AuditEntry {
  return { ...entry, details: { ...entry.details, ...facts } }
}

export const audit: Operations<'audit'> = {
  async append(unit, entry) {
    unit.audit(entry)
  },

  async list(db, page, filter = {}) {
    const where = matching(filter)
    const counted = await db
      .selectFrom('audit')
      .select(eb => eb.fn.countAll<number>().as('total'))
      .where(where)
      .executeTakeFirstOrThrow()
    const rows = await db
      .selectFrom('audit')
      .selectAll()
      .where(where)
      .orderBy('seq', 'desc')
      .limit(page.pageSize)
      .offset((page.page - 1) * page.pageSize)
      .execute()
    return { items: rows.map(toRecord), totalCount: Number(counted.total) }
  },

  async after(db, seq, limit) {
    const rows = await db.selectFrom('audit').selectAll().where('seq', '>', seq).orderBy('seq').limit(limit).execute()
    return rows.map(toRecord)
  },

  async verify(db, link, limit) {
    // A forged record below the first one must be found, too.
    const from = link.seq === 0 ? Number.MIN_SAFE_INTEGER : link.seq
    const rows = await db.selectFrom('audit').selectAll().where('seq', '>', from).orderBy('seq').limit(limit).execute()
    let last = link
    for (const row of rows) {
      const record = toRecord(row)
      const why = faultOf(record, last)
      if (why !== undefined) return { firstBroken: last.seq + 1, why }
      last = { seq: record.seq, hash: record.hash }
    }
    return { last, isEnd: rows.length < limit }
  },
}

function matching({ actor, action, subject, from, to }: AuditFilter) {
  return (eb: ExpressionBuilder<Schema, 'audit'>) =>
    eb.and([
      ...(actor === undefined ? [] : [eb('actor', '=', actor)]),
      ...(action === undefined ? [] : [eb('action', '=', action)]),
      ...(subject === undefined ? [] : [eb('subject', '=', subject)]),
      ...(from === undefined ? [] : [eb('at', '>=', from)]),
      ...(to === undefined ? [] : [eb('at', '<', to)]),
    ])
}

function toRecord(row: AuditRow): AuditRecord {
  return { ...row, details: parseDetails(row.details) }
}

/** Never throws: a record that was tampered with must still be read, to be named by verification. */
function parseDetails(text: string): AuditEntry['details'] {
  try {
    return JSON.parse(text)
  } catch {
    return { unreadable: text }
  }
}
