/**
 * Pending items whose time is over. Nothing can bring them back: what they would have sent and what reviewers saw of it
 * is deleted, the key is free. Their lines stay in the history until they are pruned.
 */
import type { HitlOperations } from '../methods.ts'
import type { HitlRow } from '../schema.ts'
import { changed, locked, statement } from '../statement.ts'
import type { AuditEntry } from '../store.ts'
import type { Unit } from '../unit.ts'
import { measure } from './bytes.ts'

type ExpiredRow = Pick<HitlRow, 'id' | 'agentId' | 'digest'>

const selectExpired = statement((db, { now, limit }: { now: number; limit: number }) =>
  locked(
    db,
    db
      .selectFrom('hitl')
      .select(['id', 'agentId', 'digest'])
      .where('status', '=', 'Pending')
      .where('expiresAt', '<=', now)
      .orderBy('expiresAt')
      .limit(limit),
    true,
  ),
)

const endItem = statement((db, { id }: { id: string }) =>
  db
    .updateTable('hitl')
    .set(eb => ({ status: 'Expired', decidedAt: eb.ref('expiresAt'), idempotencyKey: null, repeatDigest: null }))
    .where('id', '=', id)
    .where('status', '=', 'Pending'),
)

const dropShown = statement((db, { id }: { id: string }) => db.deleteFrom('hitl_shown').where('id', '=', id))
const dropSealed = statement((db, { id }: { id: string }) => db.deleteFrom('hitl_sealed').where('id', '=', id))

export const expire: HitlOperations['expire'] = async (unit, now, limit) => {
  if (!(await unit.tryAlone('expire'))) return []
  const { rows } = await selectExpired(unit.db, { now, limit })
  await expireAll(unit, rows, now)
  return rows.map(row => row.id)
}

/** Ends items that are past their expiry at `now`. */
export async function expireAll(unit: Unit, rows: readonly ExpiredRow[], now: number): Promise<void> {
  const { db } = unit
  for (const row of rows) {
    const { id } = row
    if (changed(await endItem(db, { id })) === 0) continue
    await dropShown(db, { id })
    await dropSealed(db, { id })
    unit.send(measure(db, { id }))
    unit.count(row.agentId, { waiting: -1 })
    unit.audit(expiryEntry(row, now))
    unit.event({ type: 'expired', at: now, hitlId: id, data: { agentId: row.agentId } })
  }
}

function expiryEntry({ id, agentId, digest }: ExpiredRow, now: number): AuditEntry {
  return {
    at: now,
    actor: 'gateway',
    action: 'hitl.expire',
    subject: id,
    requestId: null,
    details: { agentId, digest },
  }
}
