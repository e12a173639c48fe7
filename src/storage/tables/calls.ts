/**
 * The calls that wait for an item, of all gateways. When the last one ends unanswered, nobody would get the outcome, and
 * the item is withdrawn. The calls of a gateway that ended without a word stay: their item waits until it is decided or
 * expires.
 */
import type { HitlOperations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { HitlBrief, HitlCall, HitlRecord } from '../store.ts'
import type { Unit } from '../unit.ts'
import { findToChange } from './items.ts'
import { withdraw } from './verdicts.ts'

/** More than that are not counted: their item then waits in any case. */
const maxCalls = 200

const selectCalls = statement((db, { id }: { id: string }) =>
  db.selectFrom('hitl').select('calls').where('id', '=', id),
)

const setCalls = statement((db, { id, calls }: { id: string; calls: string | null }) =>
  db.updateTable('hitl').set({ calls }).where('id', '=', id),
)

/** Value of the column for a new item. */
export function firstCalls(gateway: string, call: HitlCall): string | null {
  return call.kind === 'polls' ? null : JSON.stringify(entriesOf(gateway, call))
}

/** One for the gateway, and one for a call that can be cancelled. */
function entriesOf(gateway: string, { kind, cancelKey }: HitlCall): readonly string[] {
  if (kind !== 'waits') return []
  return cancelKey === undefined ? [gateway] : [gateway, `${gateway} ${cancelKey}`]
}

/** A further call gets the outcome of the pending item `same`. Undefined when its last call has just left it. */
export async function join(
  unit: Unit,
  same: HitlBrief,
  { call, createdAt }: HitlRecord,
): Promise<HitlBrief | undefined> {
  const { id } = same
  const item = await findToChange(unit.db, id, createdAt)
  if (item === undefined || item.status === 'Withdrawn') return undefined
  const before = await readCalls(unit.db, id)
  if (before === undefined) return item
  const calls = [...new Set([...before, ...entriesOf(unit.gateway, call)])]
  // Whoever has used the key before may know the id.
  const isKept = call.kind === 'polls' || item.idempotencyKey !== null || calls.length > maxCalls
  if (isKept || calls.length > before.length) {
    unit.send(setCalls(unit.db, { id, calls: isKept ? null : JSON.stringify(calls) }))
  }
  return item
}

export const leave: HitlOperations['leave'] = async (
  unit,
  id,
  { agentId, cancelKey, isLast, isAnswered, now },
  entry,
) => {
  const item = await findToChange(unit.db, id, now)
  if (item?.agentId !== agentId) return 'notFound'
  const before = await readCalls(unit.db, id)
  if (before === undefined) return 'held'
  const isLeft = (call: string) =>
    call === `${unit.gateway} ${cancelKey}` || (isLast && call.split(' ')[0] === unit.gateway)
  const calls = before.filter(call => !isLeft(call))
  if (calls.length === 0 && !isAnswered) return withdraw(unit, id, { agentId, now }, entry)
  unit.send(setCalls(unit.db, { id, calls: JSON.stringify(calls) }))
  return 'held'
}

export const waitedFor: HitlOperations['waitedFor'] = async (db, agentId, cancelKey, now) => {
  const row = await db
    .selectFrom('hitl')
    .select('id')
    .where('status', '=', 'Pending')
    .where('expiresAt', '>', now)
    .where('agentId', '=', agentId)
    .where('calls', 'like', `% ${cancelKey}"%`)
    .executeTakeFirst()
  return row?.id
}

/** Undefined when the item waits in any case. */
async function readCalls(db: Db, id: string): Promise<readonly string[] | undefined> {
  const [row] = (await selectCalls(db, { id })).rows
  return row?.calls == null ? undefined : JSON.parse(row.calls)
}
