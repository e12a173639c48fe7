import { sql } from 'kysely'
import type { AuditPage } from '../audit.ts'
import { faultOf, hashOfStored, link } from '../chain.ts'
import type { Operations } from '../methods.ts'
import type { AuditRow, Db } from '../schema.ts'
import { columns, statement } from '../statement.ts'
import type { AuditEntry, AuditFilter, AuditRecord, ChainLink, Page } from '../store.ts'
import { look, within } from './looks.ts'

const selectLast = statement(db =>
  // The number as a parameter would make SQLite compile the statement each time.
  db.selectFrom('audit').select(['seq', 'hash']).orderBy('seq', 'desc').limit(sql.lit(1)),
)

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
  let last: ChainLink | undefined = rows[0]
  for (const entry of entries) {
    const row = link(entry, last)
    await insert(db, row)
    last = row
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
    const start = page.before === undefined ? undefined : await cursorOf(db, page.before)
    return start === null ? { items: [], totalCount: 0, next: null } : listFrom(db, page, { ...filter, start })
  },

  async after(db, seq, limit) {
    const rows = await db
      .selectFrom('audit')
      .select(auditColumns)
      .where('seq', '>', seq)
      .orderBy('seq')
      .limit(limit)
      .execute()
    return rows.map(toRecord)
  },

  async verify(db, link, limit) {
    const isBegun = link.seq !== 0
    // A forged record below the first one must be found, too.
    const from = isBegun ? link.seq : Number.MIN_SAFE_INTEGER
    const { rows } = await selectFrom(db, { from, limit: isBegun ? limit + 1 : limit })
    const changed = isBegun ? changedSince(rows.shift(), link) : undefined
    if (changed !== undefined) return { firstBroken: link.seq, why: changed }
    let last = link
    for (const row of rows) {
      const why = faultOf(row, last, hashOfStored(row))
      if (why !== undefined) return { firstBroken: last.seq + 1, why }
      last = { seq: row.seq, hash: row.hash }
    }
    return { last, isEnd: rows.length < limit }
  },

  async kept(db) {
    return (await selectNote(db, {})).rows[0]?.note
  },

  async keep({ db }, note) {
    await replaceNote(db, { note })
  },
}

const selectNote = statement(db => db.selectFrom('audit_pass').select('note'))

const replaceNote = statement((db, { note }: { note: Uint8Array }) =>
  db
    .insertInto('audit_pass')
    .values({ one: 1, note })
    .onConflict(conflict => conflict.column('one').doUpdateSet({ note })),
)

const selectFrom = statement((db, { from, limit }: { from: number; limit: number }) =>
  db.selectFrom('audit').select(auditColumns).where('seq', '>=', from).orderBy('seq').limit(limit),
)

/** Why the record of a link that was verified is not there as it was; undefined when it is. */
function changedSince(row: AuditRow | undefined, { seq, hash }: ChainLink): string | undefined {
  if (row?.seq !== seq) return `record ${seq} was verified before, and is missing`
  return row.hash === hash ? undefined : `record ${seq} was verified before, and is another one`
}

type AuditCursor = Pick<AuditRow, 'at' | 'seq'>

/** Where a page that goes on before a record begins; null when nothing is before it. */
async function cursorOf(db: Db, seq: number): Promise<AuditCursor | null> {
  const nearest = db.selectFrom('audit').select('at').where('seq', '<=', seq).orderBy('seq', 'desc').limit(1)
  const row = await nearest.executeTakeFirst()
  return row === undefined ? null : { at: row.at, seq }
}

interface Sought extends AuditFilter {
  /** Only records before this one. */
  readonly start: AuditCursor | undefined
}

async function listFrom(db: Db, page: Page, filter: Sought): Promise<AuditPage> {
  const [main, ...others] = (['subject', 'actor', 'action'] as const).filter(name => filter[name] !== undefined)
  const rest = others.map(name => {
    // Of the record that was looked at.
    return sql<boolean>`(select ${sql.ref(name)} from audit as record where record.seq = looked.seq) = ${filter[name]}`
  })
  const read = async (seqs: readonly number[]) =>
    (await db.selectFrom('audit').select(auditColumns).where('seq', 'in', seqs).execute()).map(toRecord)
  const { next, ...found } = await look(db, page, { found: newest(db, main, filter), rest, order: ['at', 'seq'], read })
  return { ...found, next: next?.seq ?? null }
}

type AuditIndex = 'subject' | 'actor' | 'action'

/** In the order of an index. Clocks may differ: `seq` alone is no order by time. */
function newest(db: Db, main: AuditIndex | undefined, { from, to, start, ...values }: Sought) {
  const prefix = main === undefined ? [] : [values[main]!]
  const columns = [...(main === undefined ? [] : [main]), 'at', 'seq'] as const
  const lowest = from === undefined ? [] : [from]
  const isBefore = start !== undefined && (to === undefined || start.at < to)
  const below = isBefore ? [start.at, start.seq] : to === undefined ? [] : [to]
  let records = db.selectFrom('audit').select(['at', 'seq'])
  const stretch = { columns, prefix, lowest: [...prefix, ...lowest], below: [...prefix, ...below] }
  for (const condition of within(stretch)) records = records.where(condition)
  return columns.reduce((query, column) => query.orderBy(column, 'desc'), records)
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
