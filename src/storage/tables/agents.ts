import { keysOf as namesOf } from '../../base/records.ts'
import type { AgentTrust } from '../agents.ts'
import type { Operations } from '../methods.ts'
import type { AgentKeyRow, AgentRow, Db } from '../schema.ts'
import { locked } from '../statement.ts'
import type { AgentChange, AgentKey, AgentRecord, AuditEntry } from '../store.ts'
import type { Unit } from '../unit.ts'
import { withFacts } from './audit.ts'
import { removeAccounts } from './credentials.ts'
import { voidTokens } from './tokens.ts'

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
  'recording',
] as const

export const agents: Operations<'agents'> = {
  async all(db) {
    const rows = await db.selectFrom('agents').select(publicColumns).orderBy('createdAt').orderBy('id').execute()
    const keys = Map.groupBy(await keysOf(db), ({ agentId }) => agentId)
    return rows.map(row => toRecord(row, keys.get(row.id) ?? []))
  },

  async secretHash(db, id) {
    const row = await db.selectFrom('agents').select('secretHash').where('id', '=', id).executeTakeFirst()
    return row?.secretHash
  },

  async insert(unit, agent, secretHash, entry) {
    const row = await unit.db
      .insertInto('agents')
      .values(toRow(agent, secretHash))
      .onConflict(conflict => conflict.doNothing())
      .returning(publicColumns)
      .executeTakeFirst()
    if (row === undefined) return (await find(unit.db, agent.id)) ? 'exists' : 'subjectTaken'
    unit.audit(entry)
    unit.change({ table: 'agents', key: agent.id, now: toRecord(row, []) })
    return 'stored'
  },

  async update(unit, id, change, entry, from) {
    const before = await (endsAdmin(change) ? findToEnd(unit, id) : find(unit.db, id, true))
    if (before === undefined) return 'notFound'
    if (from !== undefined && !from.includes(before.status)) return 'wrongState'
    if (await isTaken(unit.db, id, change.externalSubject)) return 'subjectTaken'
    if (endsAdmin(change) && (await isLastAdmin(unit.db, before))) return 'lastAdmin'
    const row = change.trustValue === undefined ? change : { ...change, standing: null }
    const after = { ...toRecord(await changeRow(unit.db, id, row).executeTakeFirstOrThrow(), []), keys: before.keys }
    publish(unit, before, { after, change, entry })
    return after
  },

  trust: readTrust,

  async judge(unit, id, read, { status, ...judged }, entry) {
    const isMoved = status !== read.status
    const row = await changeRow(unit.db, id, { ...judged, status })
      .where('status', '=', read.status)
      .where('trustValue', '=', read.trustValue)
      .where('trustAt', '=', read.trustAt)
      .where('standing', read.standing === null ? 'is' : '=', read.standing)
      .executeTakeFirst()
    if (row === undefined) return (await readTrust(unit.db, id)) === undefined ? 'notFound' : 'stale'
    const after = toRecord(row, await keysOf(unit.db, id))
    const change = isMoved ? { ...judged, status } : judged
    publish(unit, { ...after, ...read }, { after, change, entry })
    if (isMoved) {
      const { at, details } = entry
      unit.event({ type: 'quarantined', at, hitlId: null, data: { agentId: id, cause: details['cause'] } })
    }
    return after
  },

  async reset(unit, id, change, entry) {
    await voidTokens(unit)
    return agents.update(unit, id, change, entry)
  },

  async remove(unit, id, entry) {
    const before = await findToEnd(unit, id)
    if (before === undefined) return 'notFound'
    if (await isLastAdmin(unit.db, before)) return 'lastAdmin'
    await unit.db.deleteFrom('agents').where('id', '=', id).execute()
    await unit.db.deleteFrom('seen_tools').where('agentId', '=', id).execute()
    await removeAccounts(unit, before)
    unit.audit(entry)
    unit.change({ table: 'agents', key: id, now: undefined })
    return 'removed'
  },

  async addKey(unit, id, key, max, entry) {
    const agent = await find(unit.db, id, true)
    if (agent === undefined) return 'notFound'
    if (agent.status === 'Revoked') return 'wrongState'
    if (agent.keys.some(({ id }) => id === key.id)) return 'exists'
    if (agent.keys.length >= max) return 'full'
    await unit.db
      .insertInto('agent_keys')
      .values({ ...key, agentId: id, lastUsedAt: null })
      .execute()
    unit.audit(entry)
    unit.change({ table: 'agents', key: id, now: { ...agent, keys: [...agent.keys, key] } })
    return 'stored'
  },

  async removeKey(unit, id, keyId, entry) {
    // Changes of an agent are published in their order.
    await find(unit.db, id, true)
    const gone = unit.db.deleteFrom('agent_keys').where('id', '=', keyId).where('agentId', '=', id)
    const { numDeletedRows } = await gone.executeTakeFirst()
    if (numDeletedRows === 0n) return false
    unit.audit(entry)
    unit.change({ table: 'agents', key: id, now: await find(unit.db, id) })
    return true
  },

  async keyUses(db, id) {
    const used = db.selectFrom('agent_keys').where('agentId', '=', id).where('lastUsedAt', 'is not', null)
    return used.select('id as keyId').select('lastUsedAt as at').$narrowType<{ at: number }>().execute()
  },

  async noteKeyUses({ db }, uses) {
    for (const { keyId, at } of uses) {
      // Another gateway may have noted a later use.
      const key = db.updateTable('agent_keys').set({ lastUsedAt: at }).where('id', '=', keyId)
      await key.where(eb => eb.or([eb('lastUsedAt', 'is', null), eb('lastUsedAt', '<', at)])).execute()
    }
  },
}

async function readTrust(db: Db, id: string): Promise<AgentTrust | undefined> {
  const columns = ['status', 'trustValue', 'trustAt', 'standing'] as const
  return db.selectFrom('agents').select(columns).where('id', '=', id).executeTakeFirst()
}

type RowChange = AgentChange & Partial<Pick<AgentRow, 'standing'>>

/** Changes an agent, and gives what it is then. */
const changeRow = (db: Db, id: string, change: RowChange) =>
  db
    .updateTable('agents')
    .set({ id, ...toColumns(change) })
    .where('id', '=', id)
    .returning(publicColumns)

interface Changed {
  readonly after: AgentRecord
  readonly change: RowChange
  readonly entry: AuditEntry
}

/** Records a change with the fields as they were before, and notifies the followers. */
function publish(unit: Unit, before: AgentRecord, { after, change, entry }: Changed): void {
  const { secretHash: _, standing: __, ...shown } = change
  const changed = namesOf(shown)
  const fields = (agent: AgentRecord) => Object.fromEntries(changed.map(field => [field, agent[field]]))
  unit.audit(withFacts(entry, { before: fields(before), after: fields(after) }))
  unit.change({ table: 'agents', key: after.id, now: after })
}

const keyColumns = ['id', 'agentId', 'name', 'hash', 'createdAt', 'expiresAt'] as const

type KeyOf = Omit<AgentKeyRow, 'lastUsedAt'>

function keysOf(db: Db, id?: string): Promise<readonly KeyOf[]> {
  const all = db.selectFrom('agent_keys').select(keyColumns).orderBy('createdAt').orderBy('id')
  return (id === undefined ? all : all.where('agentId', '=', id)).execute()
}

/** Whether another agent is bound to the subject. */
async function isTaken(db: Db, id: string, subject: string | null | undefined): Promise<boolean> {
  if (subject == null) return false
  const holder = db.selectFrom('agents').select('id').where('externalSubject', '=', subject).where('id', '!=', id)
  return (await holder.executeTakeFirst()) !== undefined
}

/** Whether an agent is no active admin after the change. */
const endsAdmin = ({ status, roles }: AgentChange): boolean =>
  (status !== undefined && status !== 'Active') || roles?.includes('admin') === false

/** Whether nobody could administer without this agent. No other operation may remove an admin meanwhile. */
async function isLastAdmin(db: Db, { id, status, roles }: AgentRecord): Promise<boolean> {
  if (status !== 'Active' || !roles.includes('admin')) return false
  const others = db.selectFrom('agents').select('id').where('status', '=', 'Active').where('id', '!=', id)
  return (await others.where('roles', 'like', '%"admin"%').limit(1).executeTakeFirst()) === undefined
}

/**
 * An agent that may be no active admin afterwards, locked. Of several admins who end each other one must see that it is the
 * last; the changes of other agents wait for nobody.
 */
async function findToEnd(unit: Unit, id: string): Promise<AgentRecord | undefined> {
  const isAdmin = (agent: AgentRecord | undefined) => agent?.roles.includes('admin') === true
  const wasAdmin = isAdmin(await find(unit.db, id))
  if (wasAdmin) await unit.alone('admins')
  const agent = await find(unit.db, id, true)
  // It may have become one meanwhile.
  if (!wasAdmin && isAdmin(agent)) await unit.alone('admins')
  return agent
}

async function find(db: Db, id: string, toChange = false): Promise<AgentRecord | undefined> {
  const query = db.selectFrom('agents').select(publicColumns).where('id', '=', id)
  const row = await (toChange ? locked(db, query) : query).executeTakeFirst()
  return row && toRecord(row, await keysOf(db, id))
}

function toColumns({ roles, tags, weakSecret, recording, ...same }: RowChange): Partial<AgentRow> {
  return {
    ...same,
    ...(roles !== undefined && { roles: JSON.stringify(roles) }),
    ...(tags !== undefined && { tags: JSON.stringify(tags) }),
    ...(weakSecret !== undefined && { weakSecret: Number(weakSecret) }),
    ...(recording !== undefined && { recording: recording && JSON.stringify(recording) }),
  }
}

function toRow({ keys: _, ...agent }: AgentRecord, secretHash: string): AgentRow {
  const { roles, tags, weakSecret, recording } = agent
  const texts = {
    roles: JSON.stringify(roles),
    tags: JSON.stringify(tags),
    recording: recording && JSON.stringify(recording),
  }
  return { ...agent, ...texts, weakSecret: Number(weakSecret), standing: null, secretHash }
}

function toRecord(row: Omit<AgentRow, 'secretHash' | 'standing'>, found: readonly KeyOf[]): AgentRecord {
  const { roles, tags, weakSecret, recording } = row
  const keys = found.map(({ agentId: _, ...key }): AgentKey => key)
  return {
    ...row,
    roles: JSON.parse(roles),
    tags: JSON.parse(tags),
    weakSecret: weakSecret !== 0,
    recording: recording && JSON.parse(recording),
    keys,
  }
}
