import type { ChatIdentity } from '../identities.ts'
import type { Operations } from '../methods.ts'
import type { Db } from '../schema.ts'
import type { AuditEntry } from '../store.ts'
import type { Unit } from '../unit.ts'
import { withFacts } from './audit.ts'

const columns = ['provider', 'team', 'user'] as const

export const identities: Operations<'identities'> = {
  of: identitiesOf,
  holder,

  async set(unit, agentId, wanted, entry) {
    await unit.alone('identities')
    return replace(unit, { agentId, before: await identitiesOf(unit.db, agentId), wanted }, entry)
  },

  async add(unit, agentId, identity, max, entry) {
    await unit.alone('identities')
    const before = await identitiesOf(unit.db, agentId)
    if (before.some(known => isSame(known, identity))) return 'stored'
    if (before.length >= max) return 'full'
    return replace(unit, { agentId, before, wanted: [...before, identity] }, entry)
  },
}

interface Replacement {
  readonly agentId: string
  readonly before: readonly ChatIdentity[]
  readonly wanted: readonly ChatIdentity[]
}

async function replace(
  unit: Unit,
  { agentId, before, wanted }: Replacement,
  entry: AuditEntry,
): Promise<'stored' | 'notFound' | 'taken'> {
  const { db } = unit
  if ((await db.selectFrom('agents').select('id').where('id', '=', agentId).executeTakeFirst()) === undefined) {
    return 'notFound'
  }
  for (const identity of wanted) if (((await holder(db, identity)) ?? agentId) !== agentId) return 'taken'
  await db.deleteFrom('identities').where('agentId', '=', agentId).execute()
  const rows = wanted.map(({ provider, team, user }) => ({ agentId, provider, team, user }))
  if (rows.length > 0) await db.insertInto('identities').values(rows).execute()
  unit.audit(withFacts(entry, { before, after: await identitiesOf(db, agentId) }))
  return 'stored'
}

async function holder(db: Db, { provider, team, user }: ChatIdentity): Promise<string | undefined> {
  const found = db.selectFrom('identities').select('agentId').where('provider', '=', provider)
  return (await found.where('team', '=', team).where('user', '=', user).executeTakeFirst())?.agentId
}

async function identitiesOf(db: Db, agentId: string): Promise<readonly ChatIdentity[]> {
  const all = db.selectFrom('identities').select(columns).where('agentId', '=', agentId)
  return await all.orderBy('provider').orderBy('team').orderBy('user').execute()
}

const isSame = (left: ChatIdentity, right: ChatIdentity): boolean =>
  columns.every(column => left[column] === right[column])
