/**
 * How many items wait for a verdict, and what is stored of items, of each agent and in all. Kept as counters: to count the
 * items again at each suspension takes the longer the more there are.
 */
import { sql } from 'kysely'
import type { Db, HitlTotalsRow } from '../schema.ts'
import { statement } from '../statement.ts'
import type { Full, HitlLimits } from '../store.ts'
import { type HeldTotals, sumOf, type Unit } from '../unit.ts'

/** The id under which the count of all agents stands. */
const all = ''

const addToTotals = statement((db, { agentId, waiting, bytes }: HitlTotalsRow) =>
  db
    .insertInto('hitl_totals')
    .values([
      { agentId, waiting, bytes },
      { agentId: all, waiting, bytes },
    ])
    .onConflict(conflict =>
      conflict.column('agentId').doUpdateSet({
        waiting: sql`hitl_totals.waiting + excluded.waiting`,
        bytes: sql`hitl_totals.bytes + excluded.bytes`,
      }),
    ),
)

const selectTotals = statement((db, { agentId }: { agentId: string }) =>
  db.selectFrom('hitl_totals').select(['agentId', 'waiting', 'bytes']).where('agentId', 'in', [agentId, all]),
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

/** Call it in the transaction that makes an item pending or makes it something else. */
export async function countWaiting(db: Db, counts: ReadonlyMap<string, HeldTotals>): Promise<void> {
  for (const [agentId, totals] of counts) await addToTotals(db, { agentId, ...totals })
}

export interface HeldShare {
  readonly all: HeldTotals
  readonly ofAgent: HeldTotals
}

/** What is in the queue, as far as is committed; what expired and is not swept yet among it. */
export async function waitingOf(db: Db, agentId: string): Promise<HeldShare> {
  const { rows } = await selectTotals(db, { agentId })
  const of = (id: string) => rows.find(row => row.agentId === id) ?? { waiting: 0, bytes: 0 }
  return { all: of(all), ofAgent: of(agentId) }
}

/** The new item that needs space. */
interface RequestedSpace {
  readonly agentId: string
  readonly bytes: number
  readonly now: number
}

/**
 * Counts the item as waiting, or returns the limit that it would exceed. What expired does not count as waiting, swept or
 * not; its bytes count until it is swept.
 */
export async function takeSpace(
  unit: Unit,
  asked: RequestedSpace,
  limits: HitlLimits,
  before: HeldShare,
): Promise<Full | undefined> {
  const { agentId, bytes, now } = asked
  const seemsFull = fullLimit(unit, asked, limits, before) !== undefined
  const waiting = seemsFull ? await withoutExpired(unit.db, agentId, now, before) : before
  // Nothing is waited for from here on: of several operations in one transaction, each counts those before it.
  const full = fullLimit(unit, asked, limits, waiting)
  if (full !== undefined) return full
  if (isTight(unit, asked, limits, waiting)) unit.mayFail()
  unit.count(agentId, { waiting: 1, bytes })
  const { joinsSince: _, ...bounds } = limits
  unit.requireSpace({ ...bounds, agentId, now })
  return undefined
}

/** Usual maximum of items that other gateways may add at the same time. */
const atOnce = 8

/** Whether other gateways may take the last space meanwhile. */
function isTight(
  unit: Unit,
  { agentId, bytes }: RequestedSpace,
  limits: HitlLimits,
  { all, ofAgent }: HeldShare,
): boolean {
  const [here, agent] = [sumOf([all, unit.counted()]), sumOf([ofAgent, unit.counted(agentId)])]
  const left = Math.min(limits.maxPending - here.waiting, limits.maxPendingOfAgent - agent.waiting)
  const leftBytes = Math.min(limits.maxBytes - here.bytes, limits.maxBytesOfAgent - agent.bytes)
  return left <= atOnce || leftBytes <= atOnce * bytes
}

async function withoutExpired(db: Db, agentId: string, now: number, { all, ofAgent }: HeldShare): Promise<HeldShare> {
  const [expired] = (await countExpired(db, { agentId, now })).rows
  return {
    all: { ...all, waiting: all.waiting - Number(expired?.all ?? 0) },
    ofAgent: { ...ofAgent, waiting: ofAgent.waiting - Number(expired?.ofAgent ?? 0) },
  }
}

function fullLimit(
  unit: Unit,
  { agentId, bytes }: RequestedSpace,
  limits: HitlLimits,
  { all, ofAgent }: HeldShare,
): Full | undefined {
  const [here, agent] = [sumOf([all, unit.counted()]), sumOf([ofAgent, unit.counted(agentId)])]
  if (here.waiting >= limits.maxPending) return 'queueFull'
  if (agent.waiting >= limits.maxPendingOfAgent) return 'agentQueueFull'
  if (here.bytes + bytes > limits.maxBytes) return 'bytesFull'
  return agent.bytes + bytes > limits.maxBytesOfAgent ? 'agentBytesFull' : undefined
}
