import { sql } from 'kysely'
import type { Operations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { GrantRecord } from '../store.ts'
import { withFacts } from './audit.ts'
import { keyHolder, pruneKeys, releaseKey, takeKey } from './keys.ts'

const grantColumns = [
  ...(['id', 'agentId', 'policyName', 'rule', 'method', 'origin', 'path', 'maxUses', 'uses'] as const),
  ...(['credentials', 'hitlId', 'grantedBy', 'createdAt', 'expiresAt'] as const),
] as const satisfies (keyof GrantRecord)[]

const oldestFirst = (db: Db) =>
  db.selectFrom('grants').select(grantColumns).whereRef('uses', '<', 'maxUses').orderBy('createdAt').orderBy('id')

const selectOfAgent = statement((db, { now, agentId }: { now: number; agentId: string }) =>
  oldestFirst(db).where('agentId', '=', agentId).where('expiresAt', '>', now),
)

const useGrant = statement((db, { id, now }: { id: string; now: number }) =>
  db
    .updateTable('grants')
    .set({ uses: sql`uses + 1` })
    .where('id', '=', id)
    .where('expiresAt', '>', now)
    .whereRef('uses', '<', 'maxUses')
    .returning(grantColumns),
)

/** As it stands in the condition of their index, and in its order: no other plan is then as cheap. */
export const usedUp = (db: Db) => db.selectFrom('grants').select('id').whereRef('uses', '>=', 'maxUses').orderBy('uses')

export const grants: Operations<'grants'> = {
  async insert(unit, grant, entry) {
    const inserting = unit.db
      .insertInto('grants')
      .values(grant)
      .onConflict(on => on.column('id').doNothing())
    const rows = await inserting.returning('id').execute()
    if (rows.length === 0) return false
    unit.audit(entry)
    return true
  },

  async active(db, now, agentId) {
    return (await selectOfAgent(db, { now, agentId })).rows
  },

  async list(db, now, { agentId, after, limit } = {}) {
    // An expression: by the index on `expiresAt` all grants would be read, and sorted, for each page.
    let query = oldestFirst(db).where(sql<boolean>`"expiresAt" + 0 > ${now}`)
    if (agentId !== undefined) query = query.where('agentId', '=', agentId)
    if (after !== undefined) {
      query = query.where(eb => eb(eb.refTuple('createdAt', 'id'), '>', eb.tuple(after.createdAt, after.id)))
    }
    return (limit === undefined ? query : query.limit(limit)).execute()
  },

  async use(unit, id, { now, key }, entry) {
    const { db } = unit
    await unit.alone(`grant ${id}`, ...(key === undefined ? [] : [`${key.agentId} ${key.key}`]))
    const holder = key === undefined ? undefined : await keyHolder(db, key.agentId, key.key, now)
    if (holder !== undefined) return holder.hitlId === null ? 'keyUsed' : 'keyHeld'
    const [row] = (await useGrant(db, { id, now })).rows
    if (row === undefined) return undefined
    if (key !== undefined) unit.send(takeKey(db, key))
    unit.audit(withFacts(entry, { uses: row.uses, maxUses: row.maxUses }))
    return row
  },

  async giveBack(unit, id, key, entry) {
    const { db } = unit
    await unit.alone(`grant ${id}`)
    if (key !== undefined) await releaseKey(db, key)
    const given = db.updateTable('grants').set({ uses: sql`uses - 1` })
    const row = await given.where('id', '=', id).where('uses', '>', 0).returning(['uses', 'maxUses']).executeTakeFirst()
    if (row !== undefined) unit.audit(withFacts(entry, row))
  },

  releaseKey: ({ db }, key) => releaseKey(db, key),

  async remove(unit, id, entry) {
    const row = await unit.db.deleteFrom('grants').where('id', '=', id).returning(grantColumns).executeTakeFirst()
    if (row === undefined) return false
    unit.audit(withFacts(entry, { before: row }))
    unit.change({ table: 'grants', key: id, now: undefined })
    return true
  },

  async prune(unit, now, limit) {
    const { db } = unit
    if (!(await unit.tryAlone('prune'))) return 0
    // A limit that is not known when the plan is made may be all rows.
    const max = sql.lit(limit)
    const expired = db.selectFrom('grants').select('id').where('expiresAt', '<=', now).orderBy('expiresAt').limit(max)
    const pruned = (await removeGrants(db, expired)) || (await removeGrants(db, usedUp(db).limit(max)))
    return Math.max(pruned, await pruneKeys(db, now, limit))
  },
}

async function removeGrants(db: Db, over: ReturnType<typeof usedUp>): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('grants').where('id', 'in', over).executeTakeFirst()
  return Number(numDeletedRows)
}
