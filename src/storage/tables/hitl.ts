import { sql } from 'kysely'
import type { Db, Operations } from '../schema.ts'
import type { HitlItem, HitlLimits, HitlRecord, HitlTable } from '../store.ts'
import { append } from './audit.ts'
import { briefColumns, findLive, isLive, items, toBrief, toItem, toRow } from './items.ts'
import { claim, deny, lapse, release, settle } from './verdicts.ts'

export const hitl: Operations<HitlTable> = {
  async insert(db, record, sealed, limits, entry) {
    const existing = await holderOfKey(db, record)
    if (existing !== undefined) return { existing }
    const full = await fullQueue(db, record, limits)
    if (full !== undefined) return full
    await db.insertInto('hitl').values(toRow(record)).execute()
    await db.insertInto('hitl_sealed').values({ id: record.id, request: sealed, response: null }).execute()
    await append(db, entry)
    return 'stored'
  },

  get: findLive,

  async pending(db, now, filter = {}) {
    let query = db
      .selectFrom('hitl')
      .select([...briefColumns, sql<number>`0`.as('response_stored')])
      .where('status', '=', 'Pending')
      .where('expires_at', '>', now)
    if (filter.agentId !== undefined) query = query.where('agent_id', '=', filter.agentId)
    if (filter.host !== undefined) query = query.where('host', '=', filter.host.toLowerCase())
    if (filter.rule !== undefined) query = query.where('rule', '=', filter.rule)
    if (filter.after !== undefined) {
      const { createdAt, id } = filter.after
      query = query.where(eb => eb(eb.refTuple('created_at', 'id'), '>', eb.tuple(createdAt, id)))
    }
    if (filter.limit !== undefined) query = query.limit(filter.limit)
    const rows = await query.orderBy('created_at').orderBy('id').execute()
    return rows.map(toBrief)
  },

  async sealed(db, id) {
    const row = await db.selectFrom('hitl_sealed').select('request').where('id', '=', id).executeTakeFirst()
    return row?.request ?? undefined
  },

  async sealedResponse(db, id) {
    const row = await db.selectFrom('hitl_sealed').select('response').where('id', '=', id).executeTakeFirst()
    return row?.response ?? undefined
  },

  claim,
  release,
  settle,
  deny,

  async expire(db, now, limit) {
    const rows = await db
      .selectFrom('hitl')
      .select(['id', 'agent_id', 'digest'])
      .where('status', '=', 'Pending')
      .where('expires_at', '<=', now)
      .orderBy('expires_at')
      .limit(limit)
      .execute()
    for (const row of rows) await expireOne(db, row, now)
    return rows.map(row => row.id)
  },

  lapse,

  async prune(db, before, limit) {
    const old = db
      .selectFrom('hitl')
      .select('id')
      .where('decided_at', '<', before)
      .where(eb => eb.or([eb('replay', 'is', null), eb('replay', '!=', 'inFlight')]))
      .orderBy('decided_at')
      .limit(limit)
    const { numDeletedRows } = await db.deleteFrom('hitl').where('id', 'in', old).executeTakeFirst()
    return Number(numDeletedRows)
  },
}

/** The item that holds the idempotency key of `record`. An expired one that does is removed. */
async function holderOfKey(db: Db, record: HitlRecord): Promise<HitlItem | undefined> {
  if (record.idempotencyKey === null) return undefined
  const row = await items(db)
    .where('agent_id', '=', record.agentId)
    .where('idempotency_key', '=', record.idempotencyKey)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const item = toItem(row)
  if (isLive(item, record.createdAt)) return item
  await expireOne(db, row, record.createdAt)
  return undefined
}

async function fullQueue(db: Db, { agentId, createdAt }: HitlRecord, limits: HitlLimits) {
  const count = await db
    .selectFrom('hitl')
    .select(eb => [
      eb.fn.countAll<number>().as('all'),
      sql<number>`coalesce(sum(case when agent_id = ${agentId} then 1 else 0 end), 0)`.as('ofAgent'),
    ])
    .where('status', '=', 'Pending')
    .where('expires_at', '>', createdAt)
    .executeTakeFirstOrThrow()
  if (Number(count.all) >= limits.maxPending) return 'queueFull'
  if (Number(count.ofAgent) >= limits.maxPendingOfAgent) return 'agentQueueFull'
  return undefined
}

async function expireOne(db: Db, row: { id: string; agent_id: string; digest: string }, now: number): Promise<void> {
  await db.deleteFrom('hitl').where('id', '=', row.id).execute()
  await append(db, {
    at: now,
    actor: 'gateway',
    action: 'hitl.expire',
    subject: row.id,
    requestId: null,
    details: { agentId: row.agent_id, digest: row.digest },
  })
}
