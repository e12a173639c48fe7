import { sql } from 'kysely'
import type { HitlOperations } from '../methods.ts'
import type { Db, HitlRow, HitlShownRow } from '../schema.ts'
import { columns, statement } from '../statement.ts'
import type { HitlBrief, HitlLimits, HitlRecord } from '../store.ts'
import { lapse, recordOutcome, release } from './attempts.ts'
import { bytesOf } from './bytes.ts'
import { firstCalls, join, leave, waitedFor } from './calls.ts'
import { due } from './due.ts'
import { expire, expireAll } from './expiry.ts'
import { ends, history } from './history.ts'
import { briefs, findItem, findLive, isLive, rowColumns, toBrief, toRow } from './items.ts'
import { isGrantedKey, keyHolder } from './keys.ts'
import { countPending, oldestPending, pending } from './pending.ts'
import { claim, deny, extend, withdraw } from './verdicts.ts'
import { takeSpace, waitingOf } from './waiting.ts'

const insertItem = statement((db, row: HitlRow) => db.insertInto('hitl').values(columns(row, rowColumns)))

const insertShown = statement((db, { id, headers, body, places }: HitlShownRow) =>
  db.insertInto('hitl_shown').values({ id, headers, body, places }),
)

const insertSealed = statement((db, { id, request }: { id: string; request: Uint8Array }) =>
  db.insertInto('hitl_sealed').values({ id, request, response: null }),
)

const selectSealed = statement((db, { id }: { id: string }) =>
  db.selectFrom('hitl_sealed').select('request').where('id', '=', id),
)

const selectResponse = statement((db, { id }: { id: string }) =>
  db.selectFrom('hitl_sealed').select('response').where('id', '=', id),
)

const selectHolder = statement((db, { agentId, key }: { agentId: string; key: string }) =>
  briefs(db).where('agentId', '=', agentId).where('idempotencyKey', '=', key),
)

const selectSame = statement((db, { agentId, digest }: { agentId: string; digest: string }) =>
  briefs(db).where('agentId', '=', agentId).where('repeatDigest', '=', digest).where('idempotencyKey', 'is', null),
)

/** The digest also shows whether a request with the same key is the same. */
const closeToJoins = statement((db, { id }: { id: string }) =>
  db
    .updateTable('hitl')
    .set(eb => ({
      calls: null,
      repeatDigest: eb.case().when('idempotencyKey', 'is', null).then(null).else(eb.ref('repeatDigest')).end(),
    }))
    .where('id', '=', id),
)

export const hitl: HitlOperations = {
  async insert(unit, record, request, limits, entry) {
    const { db } = unit
    const { id, agentId, idempotencyKey: key, repeatDigest, createdAt } = record
    if (key !== null || repeatDigest !== null) await unit.alone(`${agentId} ${key ?? repeatDigest}`)
    const [same, isUsed, waiting] = await Promise.all([
      sameRequest(db, record, limits),
      key !== null && isGrantedKey(db, { agentId, key }, createdAt),
      waitingOf(db, agentId),
    ])
    if (same?.status === 'Pending' && isLive(same, createdAt)) {
      unit.mayFail()
      const existing = await join(unit, same, record)
      return existing === undefined ? hitl.insert(unit, record, request, limits, entry) : { existing }
    }
    if (same !== undefined && isLive(same, createdAt)) return { existing: same }
    if (isUsed) return 'keyUsed'
    // Another gateway may be about to end it.
    if (same !== undefined) unit.mayFail()
    const shown = { id, headers: JSON.stringify(record.headers), body: record.body, places: record.places }
    const bytes = bytesOf(record, shown, request)
    const full = await takeSpace(unit, { agentId, now: createdAt, bytes }, limits, waiting)
    if (full !== undefined) return full
    if (same !== undefined) await expireAll(unit, [same], createdAt)
    unit.send(insertItem(db, toRow(record, { calls: firstCalls(unit.gateway, record.call), bytes })))
    unit.send(insertShown(db, shown))
    unit.send(insertSealed(db, { id, request }))
    unit.audit(entry)
    const { expiresAt, summary } = record
    unit.event({ type: 'pending', at: createdAt, hitlId: id, data: { agentId, expiresAt, summary } })
    return 'stored'
  },

  async unjoin({ db }, id) {
    await closeToJoins(db, { id })
  },

  leave,
  waitedFor,
  keyHolder,
  get: findItem,
  brief: findLive,

  pending,
  history,
  ends,
  oldestPending,
  countPending,

  async sealed(db, id) {
    const { rows } = await selectSealed(db, { id })
    return rows[0]?.request ?? undefined
  },

  async sealedResponse(db, id) {
    const { rows } = await selectResponse(db, { id })
    return rows[0]?.response ?? undefined
  },

  claim,
  release,
  recordOutcome,
  deny,
  withdraw,
  extend,

  due,
  expire,
  lapse,

  async prune(unit, before, limit) {
    const { db } = unit
    if (!(await unit.tryAlone('prune'))) return 0
    const old = db
      .selectFrom('hitl')
      .select('id')
      .where('decidedAt', '<', before)
      .where(eb => eb.or([eb('replay', 'is', null), eb('replay', '!=', 'inFlight')]))
      .orderBy('decidedAt')
      // A limit that is not known when the plan is made may be all rows.
      .limit(sql.lit(limit))
    const { numDeletedRows } = await db.deleteFrom('hitl').where('id', 'in', old).executeTakeFirst()
    return Number(numDeletedRows)
  },
}

/** The item that `record` repeats: by its idempotency key, or without one by its digest. The holder of a key may have expired. */
async function sameRequest(db: Db, record: HitlRecord, limits: HitlLimits): Promise<HitlBrief | undefined> {
  const { agentId, idempotencyKey: key } = record
  if (key === null) return joinedBy(db, record, limits)
  const [holder] = (await selectHolder(db, { agentId, key })).rows
  return holder && toBrief(holder)
}

async function joinedBy(db: Db, record: HitlRecord, limits: HitlLimits): Promise<HitlBrief | undefined> {
  const { agentId, repeatDigest: digest, createdAt } = record
  if (digest === null) return undefined
  const same = (await selectSame(db, { agentId, digest })).rows.map(toBrief)
  return same.find(item => isLive(item, createdAt) && (item.decidedAt ?? createdAt) >= limits.joinsSince)
}
