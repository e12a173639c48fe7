import { sql } from 'kysely'
import type { HitlOperations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { HitlPast, HitlPastFilter, PastCursor } from '../store.ts'
import { endOf, filledUp, lookEnd, lookLimit, maxLookedAt, within } from './looks.ts'

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
export const history: HitlOperations['history'] = async (db, { page, pageSize, before }, filter = {}) => {
  const { main, rest } = divide(filter)
  const found = latest(db, main, before)
  const end = endOf(await found.limit(lookEnd.limit).offset(lookEnd.offset).execute())
  let matching = db.selectFrom(found.limit(lookLimit).as('looked'))
  for (const [column, values] of rest) matching = matching.where(columnOf(column), 'in', values)
  const all = matching.select(eb => eb.fn.countAll<number>().as('total'))
  const isFull = end !== undefined && rest.length === 0
  const totalCount = isFull ? maxLookedAt : Number((await all.executeTakeFirstOrThrow()).total)
  const inOrder = matching.select(['decidedAt', 'id']).orderBy('decidedAt', 'desc').orderBy('id', 'desc')
  const offset = (page - 1) * pageSize
  const size = Math.min(pageSize, maxLookedAt - offset)
  if (size <= 0) return { items: [], totalCount, next: end ?? null }
  const some = rest.length === 0 ? found.limit(size).offset(offset) : inOrder.limit(size).offset(offset)
  const items = await readAll(db, await some.execute(), size)
  return { items, totalCount, next: end ?? null }
}

/** A column of the request that was looked at. */
const columnOf = (column: Rest[0]) =>
  sql<string>`(select ${sql.ref(column)} from hitl as request where request.id = looked.id)`

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

/** The requests at these places, in their order. */
async function readAll(db: Db, cursors: readonly PastCursor[], size: number): Promise<readonly HitlPast[]> {
  if (cursors.length === 0) return []
  const ids = cursors.map(({ id }) => id)
  const rows = await db.selectFrom('hitl').select(columns).where('id', 'in', filledUp(ids, size)).execute()
  const requests = new Map(rows.map(row => [row.id, { ...row, approvedBy: JSON.parse(row.approvedBy) }]))
  return ids.flatMap(id => requests.get(id) ?? [])
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

type Rest = readonly [column: 'status' | 'replay' | 'host' | 'rule', values: readonly string[]]

/** The filter that has an index, and the others. */
function divide(filter: HitlPastFilter) {
  const { statuses, replay, host, rule } = filter
  const main = mainOf(filter)
  const one = (column: Rest[0], value: string | undefined): Rest[] => (value === undefined ? [] : [[column, [value]]])
  const rest: readonly Rest[] = [
    ...(main?.column === 'status' || statuses === undefined ? [] : [['status', orNone(statuses)] as const]),
    ...(main?.column === 'replay' ? [] : one('replay', replay)),
    ...one('host', host?.toLowerCase()),
    ...one('rule', rule),
  ]
  return { main, rest }
}

function mainOf({ agentId, replay, statuses }: HitlPastFilter): HistoryIndex | undefined {
  if (agentId !== undefined) return { column: 'agentId', value: agentId }
  if (replay === 'failed' || replay === 'unknown') return { column: 'replay', value: replay }
  const [status, ...more] = statuses ?? []
  return status === undefined || more.length > 0 ? undefined : { column: 'status', value: status }
}

/** An empty list is no SQL in every engine. */
const orNone = (statuses: readonly string[]) => (statuses.length === 0 ? [''] : statuses)
