/**
 * A database that is older than what has happened: brought back from a backup, or by hand. What may have moved on since
 * it was made is unknown, and nothing that was valid since may be trusted.
 */

import { voidTokens } from './tables/tokens.ts'
import type { Unit } from './unit.ts'

export interface Restored {
  /** Requests that may have been approved and sent, or sent again, since. */
  readonly unknown: number
  /** Grants that may have been used or taken back since; they are removed. */
  readonly grants: number
  /** Keys of agents that may have been revoked since; they are removed. */
  readonly keys: number
}

/** `why` says how it was noticed. */
export async function markRestored(unit: Unit, at: number, why: string): Promise<Restored> {
  const { db } = unit
  await voidTokens(unit)
  const pending = await db
    .updateTable('hitl')
    .set({ replay: 'unknown', approvedBy: '[]' })
    .where('status', '=', 'Pending')
    .executeTakeFirst()
  const sent = await db
    .updateTable('hitl')
    .set({ replay: 'unknown', replayBefore: null, leaseUntil: null })
    .where('status', '=', 'Approved')
    .where('replay', 'in', ['inFlight', 'failed'])
    .executeTakeFirst()
  const removed = await db.deleteFrom('grants').executeTakeFirst()
  const revoked = await db.deleteFrom('agent_keys').executeTakeFirst()
  // What was redeemed since is void, and a server that sees it again may take back the whole grant.
  await db.updateTable('credentials').set({ state: 'needed' }).where('rotates', '=', 1).execute()
  const unknown = Number(pending.numUpdatedRows + sent.numUpdatedRows)
  const grants = Number(removed.numDeletedRows)
  const keys = Number(revoked.numDeletedRows)
  const details = { why, unknown, grants, keys, tokens: 'void' }
  unit.audit({ at, actor: 'gateway', action: 'store.restore', subject: 'gateway.db', requestId: null, details })
  return { unknown, grants, keys }
}
