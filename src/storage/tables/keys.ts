/**
 * Idempotency keys: one of an agent names one sending, whether a person or a grant lets it pass. Held requests have
 * theirs in `hitl`; those that a grant let pass have theirs in `granted_keys`.
 */
import { sql } from 'kysely'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { KeyHolder, TakenKey } from '../store.ts'
import { isLive } from './items.ts'

interface Key {
  readonly agentId: string
  readonly key: string
}

const selectHeld = statement((db, { agentId, key }: Key) =>
  db
    .selectFrom('hitl')
    .select(['id', 'status', 'expiresAt'])
    .where('agentId', '=', agentId)
    .where('idempotencyKey', '=', key),
)

const selectGranted = statement((db, { agentId, key, now }: Key & { now: number }) =>
  db
    .selectFrom('granted_keys')
    .select('agentId')
    .where('agentId', '=', agentId)
    .where('key', '=', key)
    .where('expiresAt', '>', now),
)

/** Notes a key that was free, or has expired. */
export const takeKey = statement((db, { agentId, key, expiresAt }: TakenKey) =>
  db
    .insertInto('granted_keys')
    .values({ agentId, key, expiresAt })
    .onConflict(conflict => conflict.columns(['agentId', 'key']).doUpdateSet({ expiresAt })),
)

const deleteKey = statement((db, { agentId, key, expiresAt }: TakenKey) =>
  db
    .deleteFrom('granted_keys')
    .where('agentId', '=', agentId)
    .where('key', '=', key)
    .where('expiresAt', '=', expiresAt),
)

/** The held request, or the use of a grant, that has the key. */
export async function keyHolder(db: Db, agentId: string, key: string, now: number): Promise<KeyHolder | undefined> {
  const [held] = (await selectHeld(db, { agentId, key })).rows
  if (held !== undefined && isLive(held, now)) return { hitlId: held.id }
  return (await isGrantedKey(db, { agentId, key }, now)) ? { hitlId: null } : undefined
}

export async function isGrantedKey(db: Db, key: Key, now: number): Promise<boolean> {
  return (await selectGranted(db, { ...key, now })).rows.length > 0
}

export async function releaseKey(db: Db, taken: TakenKey): Promise<void> {
  await deleteKey(db, taken)
}

/** Removes up to `limit` that expired at `now`. */
export async function pruneKeys(db: Db, now: number, limit: number): Promise<number> {
  const columns = ['agentId', 'key'] as const
  const expired = db.selectFrom('granted_keys').select(columns).where('expiresAt', '<=', now).orderBy('expiresAt')
  // A limit that is not known when the plan is made may be all rows.
  const over = expired.limit(sql.lit(limit))
  const { numDeletedRows } = await db
    .deleteFrom('granted_keys')
    .where(eb => eb(eb.refTuple(...columns), 'in', over.$asTuple(...columns)))
    .executeTakeFirst()
  return Number(numDeletedRows)
}
