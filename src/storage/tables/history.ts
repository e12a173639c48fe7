import { sql } from 'kysely'
import type { HitlOperations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { HitlPastFilter, PastCursor } from '../store.ts'
import { look, lookLimit, maxLookedAt, within } from './looks.ts'

const columns = [
  'id',
  'agentId',
  'createdAt',
  'expiresAt',
  'approvedBy',
  'approvalsNeeded',
  'summary',
  'status',
  'replay',
  'attempt',
  'decidedBy',
  'decidedAt',
  'comment',
  'responseStatus',
] as const

/** Requests that no longer wait, latest first. */
export const history: HitlOperations['history'] = (db, { before, ...page }, filter = {}) => {
  const main = mainOf(filter)
  const rest = othersOf(filter, main?.column)
  const read = async (ids: readonly string[]) => {
    const rows = await db.selectFrom('hitl').select(columns).where('id', 'in', ids).execute()
    return rows.map(row => ({ ...row, approvedBy: JSON.parse(row.approvedBy) }))
  }
  return look(db, page, { found: latest(db, main, before), rest, order: ['decidedAt', 'id'], read })
}

const selectEnds = statement((db, { since }: { since: number }) =>
  db
    .selectFrom('hitl')
    .select(['status', 'decidedBy', 'createdAt', 'decidedAt'])
    .where('decidedAt', 'is not', null)
    .where('decidedAt', '>=', since)
    .orderBy('decidedAt', 'desc')
    .orderBy('id', 'desc')
    .limit(lookLimit)
    .$narrowType<{ decidedAt: number }>(),
)

export const ends: HitlOperations['ends'] = async (db, since) => {
  const { rows } = await selectEnds(db, { since })
  return { ends: rows, isWhole: rows.length < maxLookedAt }
}

/** A filter that has an index. */
interface HistoryIndex {
  readonly column: 'agentId' | 'replay' | 'status'
  readonly value: string
}

/** In the order of an index. `decidedAt` is null for what waits. */
function latest(db: Db, main: HistoryIndex | undefined, before: PastCursor | undefined) {
  const prefix = main === undefined ? [] : [main.value]
  const columns = [...(main === undefined ? [] : [main.column]), 'decidedAt', 'id'] as const
  const below = before === undefined ? prefix : [...prefix, before.decidedAt, before.id]
  let past = db.selectFrom('hitl').select('id').select('decidedAt').where('decidedAt', 'is not', null)
  // As it stands in the condition of the index.
  if (main?.column === 'replay') past = past.where(sql<boolean>`replay in ('failed', 'unknown')`)
  for (const condition of within({ columns, prefix, lowest: prefix, below })) past = past.where(condition)
  const ordered = columns.reduce((query, column) => query.orderBy(column, 'desc'), past)
  return ordered.$narrowType<{ decidedAt: number }>()
}

/** What is asked beside the filter that has an index. */
function othersOf({ statuses, replay, host, rule }: HitlPastFilter, main: HistoryIndex['column'] | undefined) {
  const asked = {
    status: main === 'status' ? undefined : statuses,
    replay: main === 'replay' ? undefined : replay && [replay],
    host: host === undefined ? undefined : [host.toLowerCase()],
    rule: rule === undefined ? undefined : [rule],
  }
  return Object.entries(asked).flatMap(([column, values]) => (values === undefined ? [] : [isAmong(column, values)]))
}

/** Of the request that was looked at. An empty list is no SQL in every engine. */
const isAmong = (column: string, values: readonly string[]) =>
  sql<boolean>`(select ${sql.ref(column)} from hitl as request where request.id = looked.id)
    in (${sql.join(values.length === 0 ? [''] : values)})`

function mainOf({ agentId, replay, statuses }: HitlPastFilter): HistoryIndex | undefined {
  if (agentId !== undefined) return { column: 'agentId', value: agentId }
  if (replay === 'failed' || replay === 'unknown') return { column: 'replay', value: replay }
  const [status, ...more] = statuses ?? []
  return status === undefined || more.length > 0 ? undefined : { column: 'status', value: status }
}
