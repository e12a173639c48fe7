import { sql } from 'kysely'
import type { GrantRow, Operations } from '../schema.ts'
import type { GrantRecord, GrantTable } from '../store.ts'
import { append, withFacts } from './audit.ts'

export const grants: Operations<GrantTable> = {
  async insert(db, grant, entry) {
    await db.insertInto('grants').values(toRow(grant)).execute()
    await append(db, entry)
  },

  async active(db, now, agentId) {
    let query = db.selectFrom('grants').selectAll().where('expires_at', '>', now).whereRef('uses', '<', 'max_uses')
    if (agentId !== undefined) query = query.where('agent_id', '=', agentId)
    const rows = await query.orderBy('created_at').orderBy('id').execute()
    return rows.map(toRecord)
  },

  async use(db, id, now, entry) {
    const { numUpdatedRows } = await db
      .updateTable('grants')
      .set({ uses: sql`uses + 1` })
      .where('id', '=', id)
      .where('expires_at', '>', now)
      .whereRef('uses', '<', 'max_uses')
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return undefined
    const row = await db.selectFrom('grants').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
    await append(db, withFacts(entry, { uses: row.uses, maxUses: row.max_uses }))
    return toRecord(row)
  },

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
    return Number(numDeletedRows)
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
