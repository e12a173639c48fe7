import type { Operations } from '../methods.ts'
import type { PushSubscription } from '../subscriptions.ts'

const columns = [
  'id',
  'agentId',
  'endpoint',
  'p256dh',
  'auth',
  'createdAt',
] as const satisfies (keyof PushSubscription)[]

export const subscriptions: Operations<'subscriptions'> = {
  async key(unit, sealed, unusable) {
    const { db } = unit
    await unit.alone('push_key')
    const stored = (await db.selectFrom('push_key').select('sealed').executeTakeFirst())?.sealed
    const isUnusable = stored !== undefined && unusable !== undefined && Buffer.compare(stored, unusable) === 0
    if (stored !== undefined && !isUnusable) return stored
    await db.deleteFrom('push_key').execute()
    await db.deleteFrom('push_browsers').execute()
    await db.insertInto('push_key').values({ one: 1, sealed }).execute()
    return sealed
  },

  async all(db) {
    return db.selectFrom('push_browsers').select(columns).orderBy('id').execute()
  },

  async keep(unit, { id, agentId, endpoint, p256dh, auth, createdAt }, max, entry) {
    const { db } = unit
    await unit.alone('push_browsers')
    const agent = await db.selectFrom('agents').select('id').where('id', '=', agentId).executeTakeFirst()
    if (agent === undefined) return 'notFound'
    await db.deleteFrom('push_browsers').where('id', '=', id).execute()
    await db.insertInto('push_browsers').values({ id, agentId, endpoint, p256dh, auth, createdAt }).execute()
    const own = db.selectFrom('push_browsers').select('id').where('agentId', '=', agentId)
    const newest = own.orderBy('createdAt', 'desc').orderBy('id').limit(max)
    await db.deleteFrom('push_browsers').where('agentId', '=', agentId).where('id', 'not in', newest).execute()
    unit.audit(entry)
    return 'stored'
  },

  async remove(unit, id, agentId, entry) {
    const removed = await unit.db
      .deleteFrom('push_browsers')
      .where('id', '=', id)
      .where('agentId', '=', agentId)
      .returning('id')
      .executeTakeFirst()
    if (removed !== undefined && entry !== null) unit.audit(entry)
    return removed !== undefined
  },
}
