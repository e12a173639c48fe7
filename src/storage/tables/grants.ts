import { sql } from 'kysely'
import type { Db, GrantRow, Operations } from '../schema.ts'
import { changed, statement } from '../statement.ts'
import type { GrantRecord, GrantTable } from '../store.ts'
import { append, withFacts } from './audit.ts'
import { keyHolder, pruneKeys, releaseKey, takeKey } from './keys.ts'

const unexpired = (db: Db, now: number) =>
  db.selectFrom('grants').selectAll().where('expires_at', '>', now).whereRef('uses', '<', 'max_uses')

const selectAll = statement((db, { now }: { now: number }) => unexpired(db, now).orderBy('created_at').orderBy('id'))

const selectOfAgent = statement((db, { now, agentId }: { now: number; agentId: string }) =>
  unexpired(db, now).where('agent_id', '=', agentId).orderBy('created_at').orderBy('id'),
)

const useGrant = statement((db, { id, now }: { id: string; now: number }) =>
  db
    .updateTable('grants')
    .set({ uses: sql`uses + 1` })
    .where('id', '=', id)
    .where('expires_at', '>', now)
    .whereRef('uses', '<', 'max_uses'),
)

const selectGrant = statement((db, { id }: { id: string }) => db.selectFrom('grants').selectAll().where('id', '=', id))

export const grants: Operations<GrantTable> = {
  async insert(db, grant, entry) {
    await db.insertInto('grants').values(toRow(grant)).execute()
    await append(db, entry)
  },

  async active(db, now, agentId) {
    const { rows } = agentId === undefined ? await selectAll(db, { now }) : await selectOfAgent(db, { now, agentId })
    return rows.map(toRecord)
  },

  async use(db, id, { now, key }, entry) {
    if (key !== undefined && (await keyHolder(db, key.agentId, key.key, now)) !== undefined) return 'keyTaken'
    if (changed(await useGrant(db, { id, now })) === 0) return undefined
    const [row] = (await selectGrant(db, { id })).rows
    if (row === undefined) throw new Error('cannot happen: a grant vanished inside its transaction')
    if (key !== undefined) await takeKey(db, key)
    await append(db, withFacts(entry, { uses: row.uses, maxUses: row.max_uses }))
    return toRecord(row)
  },

  releaseKey,

  async remove(db, id, entry) {
    const row = await db.deleteFrom('grants').where('id', '=', id).returningAll().executeTakeFirst()
    if (row === undefined) return false
    await append(db, withFacts(entry, { before: toRecord(row) }))
    return true
  },

  async prune(db, now, limit) {
    const over = db
      .selectFrom('grants')
      .select('id')
      .where(eb => eb.or([eb('expires_at', '<=', now), eb('uses', '>=', eb.ref('max_uses'))]))
      .limit(limit)
    const { numDeletedRows } = await db.deleteFrom('grants').where('id', 'in', over).executeTakeFirst()
    return Math.max(Number(numDeletedRows), await pruneKeys(db, now, limit))
  },
}

function toRow(grant: GrantRecord): GrantRow {
  return {
    id: grant.id,
    agent_id: grant.agentId,
    policy_name: grant.policyName,
    rule: grant.rule,
    method: grant.method,
    origin: grant.origin,
    path: grant.path,
    max_uses: grant.maxUses,
    uses: grant.uses,
    hitl_id: grant.hitlId,
    granted_by: grant.grantedBy,
    created_at: grant.createdAt,
    expires_at: grant.expiresAt,
  }
}

function toRecord(row: GrantRow): GrantRecord {
  return {
    id: row.id,
    agentId: row.agent_id,
    policyName: row.policy_name,
    rule: row.rule,
    method: row.method,
    origin: row.origin,
    path: row.path,
    maxUses: row.max_uses,
    uses: row.uses,
    hitlId: row.hitl_id,
    grantedBy: row.granted_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}
