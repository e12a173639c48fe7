/** The requests that wait. Those that have expired and are not swept yet are few: no index is asked to leave them out. */
import { sql } from 'kysely'
import type { HitlOperations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import { waitingOf } from './waiting.ts'

/** An expression: by the index on `expiresAt` all that wait would be read, and sorted, for each page. */
const isUnexpired = (now: number) => sql<boolean>`"expiresAt" + 0 > ${now}`

const inOrder = (db: Db, now: number) =>
  db.selectFrom('hitl').where('status', '=', 'Pending').where(isUnexpired(now)).orderBy('createdAt').orderBy('id')

const selectOldest = statement((db, { now }: { now: number }) => inOrder(db, now).select('createdAt').limit(sql.lit(1)))

const countExpired = statement((db, { now }: { now: number }) =>
  db
    .selectFrom('hitl')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('status', '=', 'Pending')
    .where('expiresAt', '<=', now),
)

export const pending: HitlOperations['pending'] = async (db, now, filter = {}) => {
  const { agentId, host, rule, after, limit } = filter
  let query = inOrder(db, now).select([
    ...(['id', 'agentId', 'createdAt', 'expiresAt', 'approvedBy', 'approvalsNeeded', 'summary'] as const),
  ])
  if (agentId !== undefined) query = query.where('agentId', '=', agentId)
  if (host !== undefined) query = query.where('host', '=', host.toLowerCase())
  if (rule !== undefined) query = query.where('rule', '=', rule)
  if (after !== undefined) {
    query = query.where(eb => eb(eb.refTuple('createdAt', 'id'), '>', eb.tuple(after.createdAt, after.id)))
  }
  if (limit !== undefined) query = query.limit(limit)
  const rows = await query.execute()
  return rows.map(row => ({ ...row, approvedBy: JSON.parse(row.approvedBy) }))
}

export const oldestPending: HitlOperations['oldestPending'] = async (db, now) => {
  const { rows } = await selectOldest(db, { now })
  return rows[0]?.createdAt
}

export const countPending: HitlOperations['countPending'] = async (db, now) => {
  const [{ all }, { rows }] = await Promise.all([waitingOf(db, ''), countExpired(db, { now })])
  // PostgreSQL counts in 64 bits, which its driver passes on as text.
  return all.waiting - Number(rows[0]?.count ?? 0)
}
