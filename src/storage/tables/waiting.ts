/**
 * How many items wait for a verdict, of each agent and in all. Kept as counters: to count the items again at each
 * suspension takes the longer the more of them wait.
 */
import { sql } from 'kysely'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { HitlLimits, HitlRecord } from '../store.ts'

/** The id under which the count of all agents stands. */
const all = ''

interface Count {
  readonly agentId: string
  readonly change: number
}

const addToCounts = statement((db, { agentId, change }: Count) =>
  db
    .insertInto('hitl_waiting')
    .values([
      { agentId: agentId, waiting: change },
      { agentId: all, waiting: change },
    ])
    .onConflict(conflict =>
      conflict.column('agentId').doUpdateSet({ waiting: sql`hitl_waiting.waiting + excluded.waiting` }),
    ),
)

const selectCounts = statement((db, { agentId }: { agentId: string }) =>
  db.selectFrom('hitl_waiting').selectAll().where('agentId', 'in', [agentId, all]),
)

const countExpired = statement((db, { agentId, now }: { agentId: string; now: number }) =>
  db
    .selectFrom('hitl')
    .select(eb => [
      eb.fn.countAll<number>().as('all'),
      sql<number>`coalesce(sum(case when "agentId" = ${agentId} then 1 else 0 end), 0)`.as('ofAgent'),
    ])
    .where('status', '=', 'Pending')
    .where('expiresAt', '<=', now),
)

/** Call it in the transaction that makes an item pending (1) or makes it something else (-1). */
export async function countWaiting(db: Db, counts: ReadonlyMap<string, number>): Promise<void> {
  for (const [agentId, change] of counts) await addToCounts(db, { agentId, change })
}

/** Which limit leaves no room for `record`, if any. What expired takes no room, swept or not. */
export async function fullQueue(db: Db, { agentId, createdAt }: HitlRecord, limits: HitlLimits) {
  const { rows } = await selectCounts(db, { agentId })
  const waiting = { all: 0, ofAgent: 0 }
  for (const row of rows) waiting[row.agentId === all ? 'all' : 'ofAgent'] = row.waiting
  if (exceeded(waiting, limits) === undefined) return undefined
  const [expired] = (await countExpired(db, { agentId, now: createdAt })).rows
  return exceeded(
    { all: waiting.all - Number(expired?.all ?? 0), ofAgent: waiting.ofAgent - Number(expired?.ofAgent ?? 0) },
    limits,
  )
}

function exceeded(waiting: { readonly all: number; readonly ofAgent: number }, limits: HitlLimits) {
  if (waiting.all >= limits.maxPending) return 'queueFull'
  if (waiting.ofAgent >= limits.maxPendingOfAgent) return 'agentQueueFull'
  return undefined
}
