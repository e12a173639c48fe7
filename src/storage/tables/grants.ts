import { sql } from 'kysely'
import type { Operations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import { withFacts } from './audit.ts'
import { keyHolder, pruneKeys, releaseKey, takeKey } from './keys.ts'

const unexpired = (db: Db, now: number) =>
  db.selectFrom('grants').selectAll().where('expiresAt', '>', now).whereRef('uses', '<', 'maxUses')

const selectAll = statement((db, { now }: { now: number }) => unexpired(db, now).orderBy('createdAt').orderBy('id'))

const selectOfAgent = statement((db, { now, agentId }: { now: number; agentId: string }) =>
  unexpired(db, now).where('agentId', '=', agentId).orderBy('createdAt').orderBy('id'),
)

const useGrant = statement((db, { id, now }: { id: string; now: number }) =>
  db
    .updateTable('grants')
    .set({ uses: sql`uses + 1` })
    .where('id', '=', id)
    .where('expiresAt', '>', now)
    .whereRef('uses', '<', 'maxUses')
    .returningAll(),
)

export const grants: Operations<'grants'> = {
  async insert(unit, grant, entry) {
    await unit.db.insertInto('grants').values(grant).execute()
    unit.audit(entry)
  },

  async active(db, now, agentId) {
    const { rows } = agentId === undefined ? await selectAll(db, { now }) : await selectOfAgent(db, { now, agentId })
    return rows
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

  releaseKey: ({ db }, key) => releaseKey(db, key),

  async remove(unit, id, entry) {
    const row = await unit.db.deleteFrom('grants').where('id', '=', id).returningAll().executeTakeFirst()
    if (row === undefined) return false
    unit.audit(withFacts(entry, { before: row }))
    unit.change({ table: 'grants', key: id, now: undefined })
    return true
  },

  async prune(unit, now, limit) {
    const { db } = unit
    if (!(await unit.tryAlone('prune'))) return 0
    const over = db
      .selectFrom('grants')
      .select('id')
      .where(eb => eb.or([eb('expiresAt', '<=', now), eb('uses', '>=', eb.ref('maxUses'))]))
      .limit(limit)
    const { numDeletedRows } = await db.deleteFrom('grants').where('id', 'in', over).executeTakeFirst()
    return Math.max(Number(numDeletedRows), await pruneKeys(db, now, limit))
  },
}
