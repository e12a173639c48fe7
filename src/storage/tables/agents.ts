import type { AgentRow, Db, Operations } from '../schema.ts'
import type { AgentChange, AgentRecord, AgentTable } from '../store.ts'
import { append, withFacts } from './audit.ts'

const publicColumns = [
  'id',
  'name',
  'owner_id',
  'status',
  'policy_name',
  'roles',
  'external_subject',
  'tags',
  'trust_value',
  'trust_at',
  'created_at',
  'weak_secret',
] as const

export const agents: Operations<AgentTable> = {
  async all(db) {
    const rows = await db.selectFrom('agents').select(publicColumns).orderBy('created_at').orderBy('id').execute()
    return rows.map(toRecord)
  },

  async secretHash(db, id) {
    const row = await db.selectFrom('agents').select('secret_hash').where('id', '=', id).executeTakeFirst()
    return row?.secret_hash
  },

  async insert(db, agent, secretHash, entry) {
    await db.insertInto('agents').values(toRow(agent, secretHash)).execute()
    await append(db, entry)
  },

  async update(db, id, change, entry, from) {
    const before = await find(db, id)
    if (before === undefined) return 'notFound'
    let query = db
      .updateTable('agents')
      .set({ id, ...toColumns(change) })
      .where('id', '=', id)
    if (from !== undefined) query = query.where('status', 'in', from)
    const { numUpdatedRows } = await query.executeTakeFirst()
    if (numUpdatedRows === 0n) return 'wrongState'
    const { secretHash: _, ...shown } = change
    const changed = Object.keys(shown) as (keyof typeof shown)[]
    const fields = (agent: AgentRecord) => Object.fromEntries(changed.map(field => [field, agent[field]]))
    const after = { ...before, ...shown }
    await append(db, withFacts(entry, { before: fields(before), after: fields(after) }))
    return after
  },

  async remove(db, id, entry) {
    const { numDeletedRows } = await db.deleteFrom('agents').where('id', '=', id).executeTakeFirst()
    if (numDeletedRows === 0n) return false
    await append(db, entry)
    return true
  },
}

async function find(db: Db, id: string): Promise<AgentRecord | undefined> {
  const row = await db.selectFrom('agents').select(publicColumns).where('id', '=', id).executeTakeFirst()
  return row && toRecord(row)
}

function toColumns(change: AgentChange): Partial<AgentRow> {
  return {
    ...(change.status !== undefined && { status: change.status }),
    ...(change.policyName !== undefined && { policy_name: change.policyName }),
    ...(change.roles !== undefined && { roles: JSON.stringify(change.roles) }),
    ...(change.externalSubject !== undefined && { external_subject: change.externalSubject }),
    ...(change.trustValue !== undefined && { trust_value: change.trustValue }),
    ...(change.trustAt !== undefined && { trust_at: change.trustAt }),
    ...(change.weakSecret !== undefined && { weak_secret: Number(change.weakSecret) }),
    ...(change.secretHash !== undefined && { secret_hash: change.secretHash }),
  }
}

function toRow(agent: AgentRecord, secretHash: string): AgentRow {
  return {
    id: agent.id,
    name: agent.name,
    owner_id: agent.ownerId,
    status: agent.status,
    policy_name: agent.policyName,
    roles: JSON.stringify(agent.roles),
    external_subject: agent.externalSubject,
    tags: JSON.stringify(agent.tags),
    trust_value: agent.trustValue,
    trust_at: agent.trustAt,
    created_at: agent.createdAt,
    secret_hash: secretHash,
    weak_secret: Number(agent.weakSecret),
  }
}

function toRecord(row: Omit<AgentRow, 'secret_hash'>): AgentRecord {
  return {
    id: row.id,
    name: row.name,
    ownerId: row.owner_id,
    status: row.status,
    policyName: row.policy_name,
    roles: JSON.parse(row.roles),
    externalSubject: row.external_subject,
    tags: JSON.parse(row.tags),
    trustValue: row.trust_value,
    trustAt: row.trust_at,
    createdAt: row.created_at,
    weakSecret: row.weak_secret !== 0,
  }
}
