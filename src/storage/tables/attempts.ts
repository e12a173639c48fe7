/** Attempts to send an approved item: each is recorded by the one that holds the claim. */
import type { HitlOperations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { locked, statement } from '../statement.ts'
import type { GatewayAttempts, ReplayState } from '../store.ts'
import { withFacts } from './audit.ts'
import { measure } from './bytes.ts'
import { undecided } from './items.ts'
import { dropSealed } from './verdicts.ts'

interface AttemptKey {
  readonly id: string
  readonly attempt: number
}

const releaseFirst = statement(
  (db, { id, attempt, approvalsNeeded }: AttemptKey & { approvalsNeeded: number | null }) =>
    held(db, id, attempt)
      .set(eb => ({
        ...undecided,
        approvalsNeeded: eb.fn.coalesce(eb.val(approvalsNeeded), eb.ref('approvalsNeeded')),
      }))
      .where('replayBefore', 'is', null)
      .returning(['agentId', 'approvalsNeeded']),
)

const releaseAgain = statement((db, { id, attempt }: AttemptKey) =>
  held(db, id, attempt)
    .set(eb => ({ replay: eb.ref('replayBefore'), replayBefore: null, leaseUntil: null }))
    .where('replayBefore', 'is not', null)
    .returning(['agentId', 'approvalsNeeded']),
)

/** After a resend the item was Approved before the claim, and is again: the attempt before may have reached out. */
export const release: HitlOperations['release'] = async (unit, id, attempt, entry, needed) => {
  const { db } = unit
  const [first] = (await releaseFirst(db, { id, attempt, approvalsNeeded: needed ?? null })).rows
  const [released] = first === undefined ? (await releaseAgain(db, { id, attempt })).rows : [first]
  if (released === undefined) return false
  const { agentId, approvalsNeeded } = released
  if (first !== undefined) unit.count(agentId, { waiting: 1 })
  unit.audit(withFacts(entry, { attempt }))
  const data = { agentId, why: entry.details['why'], approvalsNeeded }
  unit.event({ type: 'released', at: entry.at, hitlId: id, data })
  return true
}

interface AttemptOutcome extends AttemptKey {
  readonly replay: ReplayState
  readonly responseStatus: number | null
}

const updateOutcome = statement((db, { id, attempt, replay, responseStatus }: AttemptOutcome) =>
  held(db, id, attempt)
    .set({ replay, replayBefore: null, leaseUntil: null, responseStatus: responseStatus })
    .returning('agentId'),
)

const keepAnswer = statement((db, { id, response }: { id: string; response: Uint8Array | null }) =>
  db.updateTable('hitl_sealed').set({ response }).where('id', '=', id),
)

/** A claim holds until its outcome is written, also when its lease lapsed: a late answer is truer than `unknown`. */
export const recordOutcome: HitlOperations['recordOutcome'] = async (unit, id, attempt, outcome, entry) => {
  const { db } = unit
  const { replay, responseStatus, sealedResponse } = outcome
  const [item] = (await updateOutcome(db, { id, attempt, replay, responseStatus })).rows
  if (item === undefined) return false
  if (replay === 'completed') unit.send(dropSealed(db, { id }))
  unit.send(keepAnswer(db, { id, response: sealedResponse }))
  unit.send(measure(db, { id }))
  unit.audit(withFacts(entry, { attempt, replay, responseStatus }))
  unit.event({ type: replay, at: entry.at, hitlId: id, data: { agentId: item.agentId, responseStatus } })
  return true
}

/** Those whose lease is over at `now`, but for those of the owner, who knows better. */
function lapsed(db: Db, now: number, { owner, held, over }: GatewayAttempts) {
  const ofGateway = [...held, ...over]
  const all = inFlight(db).where('leaseUntil', '<=', now).orderBy('leaseUntil')
  return ofGateway.length === 0
    ? all
    : all.where(eb => eb.not(eb.and([eb('owner', '=', owner), eb('id', 'in', ofGateway)])))
}

const selectHeldHere = statement((db, { id, owner }: { id: string; owner: string }) =>
  locked(db, inFlight(db).where('id', '=', id).where('owner', '=', owner)),
)

function inFlight(db: Db) {
  return db.selectFrom('hitl').select(['id', 'agentId', 'attempt', 'digest']).where('replay', '=', 'inFlight')
}

export const lapse: HitlOperations['lapse'] = async (unit, now, ofGateway, limit) => {
  const { db } = unit
  const due = await locked(db, lapsed(db, now, ofGateway).limit(limit), true).execute()
  for (const id of ofGateway.over) due.push(...(await selectHeldHere(db, { id, owner: ofGateway.owner })).rows)
  for (const { id, agentId, attempt, digest } of due) {
    await db.updateTable('hitl').set({ replay: 'unknown' }).where('id', '=', id).execute()
    unit.audit({
      at: now,
      actor: 'gateway',
      action: 'hitl.replay',
      subject: id,
      requestId: null,
      details: { digest, outcome: 'unknown', attempt, replay: 'unknown', responseStatus: null },
    })
    unit.event({ type: 'unknown', at: now, hitlId: id, data: { agentId } })
  }
  return due.map(row => row.id)
}

/** An update of the item if `attempt` still holds the claim on it. */
function held(db: Db, id: string, attempt: number) {
  return db.updateTable('hitl').where('id', '=', id).where('attempt', '=', attempt).where('leaseUntil', 'is not', null)
}
