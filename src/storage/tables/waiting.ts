/**
 * How many items wait for a verdict, of each agent and in all. Kept as counters: to count the items again at each
 * suspension takes the longer the more of them wait.
 */
import { sql } from 'kysely'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { HitlLimits, HitlRecord } from '../store.ts'
import type { Unit } from '../unit.ts'

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

export interface Waiting {
  readonly all: number
  readonly ofAgent: number
}

/** How many wait, as far as is committed; what expired and is not swept yet among them. */
export async function waitingOf(db: Db, agentId: string): Promise<Waiting> {
  const { rows } = await selectCounts(db, { agentId })
  const waiting = { all: 0, ofAgent: 0 }
  for (const row of rows) waiting[row.agentId === all ? 'all' : 'ofAgent'] = row.waiting
  return waiting
}

/** Counts `record` as waiting, or returns which limit leaves no room for it. What expired takes none, swept or not. */
export async function takeRoom(unit: Unit, record: HitlRecord, limits: HitlLimits, before: Waiting) {
  const { agentId, createdAt: now } = record
  const seemsFull = fullQueue(unit, agentId, limits, before) !== undefined
  const waiting = seemsFull ? await withoutExpired(unit.db, agentId, now, before) : before
  // Nothing is waited for from here on: of several operations in one transaction, each counts those before it.
  const full = fullQueue(unit, agentId, limits, waiting)
  if (full !== undefined) return full
  if (isTight(unit, agentId, limits, waiting)) unit.mayFail()
  unit.count(agentId, 1)
  unit.room({ ...limits, agentId, now })
  return undefined
}

/** So many others may take room elsewhere at the same time, as a rule. */
const atOnce = 8

/** Whether others may take the last room meanwhile. */
function isTight(unit: Unit, agentId: string, limits: HitlLimits, { all, ofAgent }: Waiting): boolean {
  const left = limits.maxPending - all - unit.counted()
  const leftOfAgent = limits.maxPendingOfAgent - ofAgent - unit.counted(agentId)
  return Math.min(left, leftOfAgent) <= atOnce
}

async function withoutExpired(db: Db, agentId: string, now: number, { all, ofAgent }: Waiting): Promise<Waiting> {
  const [expired] = (await countExpired(db, { agentId, now })).rows
  return { all: all - Number(expired?.all ?? 0), ofAgent: ofAgent - Number(expired?.ofAgent ?? 0) }
}

function fullQueue(unit: Unit, agentId: string, limits: HitlLimits, { all, ofAgent }: Waiting) {
  if (all + unit.counted() >= limits.maxPending) return 'queueFull'
  if (ofAgent + unit.counted(agentId) >= limits.maxPendingOfAgent) return 'agentQueueFull'
  return undefined
}
