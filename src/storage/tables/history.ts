import type { ExpressionBuilder } from 'kysely'
import type { Operations } from '../methods.ts'
import type { Schema } from '../schema.ts'
import type { HitlPastFilter, HitlStatus } from '../store.ts'

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
export const history: Operations<'hitl'>['history'] = async (db, { page, pageSize }, filter = {}) => {
  const where = matching(filter)
  const counted = await db
    .selectFrom('hitl')
    .select(eb => eb.fn.countAll<number>().as('total'))
    .where(where)
    .executeTakeFirstOrThrow()
  const rows = await db
    .selectFrom('hitl')
    .select(columns)
    .where(where)
    .orderBy('decidedAt', 'desc')
    .orderBy('id')
    .limit(pageSize)
    .offset((page - 1) * pageSize)
    .execute()
  const items = rows.map(row => ({ ...row, approvedBy: JSON.parse(row.approvedBy) }))
  return { items, totalCount: Number(counted.total) }
}

/** An empty list is no SQL in every engine. */
const noStatus = '' as HitlStatus

/** `decidedAt` is null for what waits, and has the index. */
function matching({ statuses, replay, agentId, host, rule }: HitlPastFilter) {
  return (eb: ExpressionBuilder<Schema, 'hitl'>) =>
    eb.and([
      eb('decidedAt', 'is not', null),
      ...(statuses === undefined ? [] : [eb('status', 'in', statuses.length === 0 ? [noStatus] : statuses)]),
      ...(replay === undefined ? [] : [eb('replay', '=', replay)]),
      ...(agentId === undefined ? [] : [eb('agentId', '=', agentId)]),
      ...(host === undefined ? [] : [eb('host', '=', host.toLowerCase())]),
      ...(rule === undefined ? [] : [eb('rule', '=', rule)]),
    ])
}
