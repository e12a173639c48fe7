import { keysOf } from '../../base/records.ts'
import type { Operations } from '../methods.ts'
import type { AgentRow, Db } from '../schema.ts'
import type { AgentChange, AgentRecord } from '../store.ts'
import { withFacts } from './audit.ts'

const publicColumns = [
  'id',
  'name',
  'ownerId',
  'status',
  'policyName',
  'roles',
  'externalSubject',
  'tags',
  'trustValue',
  'trustAt',
  'createdAt',
  'weakSecret',
] as const

export const agents: Operations<'agents'> = {
  async all(db) {
    const rows = await db.selectFrom('agents').select(publicColumns).orderBy('createdAt').orderBy('id').execute()
    return rows.map(toRecord)
  },

  async secretHash(db, id) {
    const row = await db.selectFrom('agents').select('secretHash').where('id', '=', id).executeTakeFirst()
    return row?.secretHash
  },

  async insert(unit, agent, secretHash, entry) {
    const { numInsertedOrUpdatedRows } = await unit.db
      .insertInto('agents')
      .values(toRow(agent, secretHash))
      .onConflict(conflict => conflict.doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows === 0n) return (await find(unit.db, agent.id)) ? 'exists' : 'subjectTaken'
    unit.audit(entry)
    unit.change({ table: 'agents', key: agent.id, now: agent })
    return 'stored'
  },

  async update(unit, id, change, entry, from) {
    const { db } = unit
    const before = await find(db, id)
    if (before === undefined) return 'notFound'
    if (from !== undefined && !from.includes(before.status)) return 'wrongState'
    if (await isTaken(db, id, change.externalSubject)) return 'subjectTaken'
    const row = await db
      .updateTable('agents')
      .set({ id, ...toColumns(change) })
      .where('id', '=', id)
      .returning(publicColumns)
      .executeTakeFirstOrThrow()
    const { secretHash: _, ...shown } = change
    const changed = keysOf(shown)
    const fields = (agent: AgentRecord) => Object.fromEntries(changed.map(field => [field, agent[field]]))
    const after = toRecord(row)
    unit.audit(withFacts(entry, { before: fields(before), after: fields(after) }))
    unit.change({ table: 'agents', key: id, now: after })
    return after
  },

  async remove(unit, id, entry) {
    const { numDeletedRows } = await unit.db.deleteFrom('agents').where('id', '=', id).executeTakeFirst()
    if (numDeletedRows === 0n) return false
    await unit.db.deleteFrom('seen_tools').where('agentId', '=', id).execute()
    unit.audit(entry)
    unit.change({ table: 'agents', key: id, now: undefined })
    return true
  },
}

/** Whether another agent is bound to the subject. */
async function isTaken(db: Db, id: string, subject: string | null | undefined): Promise<boolean> {
  if (subject == null) return false
  const holder = db.selectFrom('agents').select('id').where('externalSubject', '=', subject).where('id', '!=', id)
  return (await holder.executeTakeFirst()) !== undefined
}

async function find(db: Db, id: string): Promise<AgentRecord | undefined> {
  const row = await db.selectFrom('agents').select(publicColumns).where('id', '=', id).executeTakeFirst()
  return row && toRecord(row)
}

function toColumns({ roles, weakSecret, ...same }: AgentChange): Partial<AgentRow> {
  return {
    ...same,
    ...(roles !== undefined && { roles: JSON.stringify(roles) }),
    ...(weakSecret !== undefined && { weakSecret: Number(weakSecret) }),
  }
}

function toRow(agent: AgentRecord, secretHash: string): AgentRow {
  const { roles, tags, weakSecret } = agent
  const texts = { roles: JSON.stringify(roles), tags: JSON.stringify(tags) }
  return { ...agent, ...texts, weakSecret: Number(weakSecret), secretHash }
}

function toRecord(row: Omit<AgentRow, 'secretHash'>): AgentRecord {
  const { roles, tags, weakSecret } = row
  return { ...row, roles: JSON.parse(roles), tags: JSON.parse(tags), weakSecret: weakSecret !== 0 }
}
