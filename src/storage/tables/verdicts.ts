/**
 * What happens to an item after it was suspended. Each is one conditional update: of any number of callers one wins.
 */
import type { Db, Operations } from '../schema.ts'
import type { AuditEntry, HitlItem, HitlTable } from '../store.ts'
import { append, withFacts } from './audit.ts'
import { find, findLive, undecided } from './items.ts'

type Table = Operations<HitlTable>
type Claim = Parameters<HitlTable['claim']>[1]

export const claim: Table['claim'] = async (db, id, claim, entry) => {
  const item = await findLive(db, id, claim.now)
  if (item === undefined) return 'notFound'
  return claim.resend ? claimAgain(db, item, claim, entry) : approve(db, item, claim, entry)
}

async function approve(db: Db, item: HitlItem, claim: Claim, entry: AuditEntry) {
  const { reviewer, comment, now, leaseUntil } = claim
  if (item.status !== 'Pending') return { lost: item }
  if (item.approvedBy.includes(reviewer)) return { waiting: item }
  const approvedBy = [...item.approvedBy, reviewer]
  const enough = approvedBy.length >= item.approvalsNeeded
  const verdict = {
    status: 'Approved',
    replay: 'inFlight',
    attempt: item.attempt + 1,
    lease_until: leaseUntil,
    decided_by: reviewer,
    decided_at: now,
    comment,
  } as const
  const { numUpdatedRows } = await db
    .updateTable('hitl')
    .set({ approved_by: JSON.stringify(approvedBy), ...(enough && verdict) })
    .where('id', '=', item.id)
    .where('status', '=', 'Pending')
    .where('expires_at', '>', now)
    .where('approved_by', '=', JSON.stringify(item.approvedBy))
    .executeTakeFirst()
  const after = await findAgain(db, item.id)
  if (numUpdatedRows === 0n) return { lost: after }
  const { attempt, approvalsNeeded } = after
  await append(db, withFacts(entry, { digest: item.digest, approvals: approvedBy.length, approvalsNeeded, attempt }))
  return enough ? { claimed: after } : { waiting: after }
}

/** The verdict stays that of the first claim; who sends again is in the audit trail. */
async function claimAgain(db: Db, item: HitlItem, claim: Claim, entry: AuditEntry) {
  const { numUpdatedRows } = await db
    .updateTable('hitl')
    .set(eb => ({
      replay_before: eb.ref('replay'),
      replay: 'inFlight',
      attempt: item.attempt + 1,
      lease_until: claim.leaseUntil,
      response_status: null,
    }))
    .where('id', '=', item.id)
    .where('attempt', '=', item.attempt)
    .where('status', '=', 'Approved')
    .where('replay', 'in', ['failed', 'unknown'])
    .executeTakeFirst()
  const after = await findAgain(db, item.id)
  if (numUpdatedRows === 0n) return { lost: after }
  await append(db, withFacts(entry, { digest: item.digest, resend: true, attempt: after.attempt }))
  return { claimed: after }
}

export const deny: Table['deny'] = async (db, id, verdict, entry) => {
  const { numUpdatedRows } = await db
    .updateTable('hitl')
    .set({
      status: 'Denied',
      decided_by: verdict.reviewer,
      decided_at: verdict.now,
      comment: verdict.comment,
    })
    .where('id', '=', id)
    .where('status', '=', 'Pending')
    .where('expires_at', '>', verdict.now)
    .executeTakeFirst()
  const item = await findLive(db, id, verdict.now)
  if (item === undefined) return 'notFound'
  if (numUpdatedRows === 0n) return { lost: item }
  await db.updateTable('hitl_sealed').set({ request: null }).where('id', '=', id).execute()
  await append(db, withFacts(entry, { digest: item.digest }))
  return { denied: item }
}

/** After a resend the item was Approved before the claim, and is again: the attempt before may have reached out. */
export const release: Table['release'] = async (db, id, attempt, entry) => {
  const first = await held(db, id, attempt).set(undecided).where('replay_before', 'is', null).executeTakeFirst()
  const again = await held(db, id, attempt)
    .set(eb => ({ replay: eb.ref('replay_before'), replay_before: null, lease_until: null }))
    .where('replay_before', 'is not', null)
    .executeTakeFirst()
  if (first.numUpdatedRows + again.numUpdatedRows === 0n) return false
  await append(db, withFacts(entry, { attempt }))
  return true
}

/** A claim holds until its outcome is written, also when its lease lapsed: a late answer is truer than `unknown`. */
export const settle: Table['settle'] = async (db, id, attempt, outcome, entry) => {
  const { replay, responseStatus, sealedResponse } = outcome
  const { numUpdatedRows } = await held(db, id, attempt)
    .set({ replay, replay_before: null, lease_until: null, response_status: responseStatus })
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return false
  await db
    .updateTable('hitl_sealed')
    .set({ response: sealedResponse, ...(replay === 'completed' && { request: null }) })
    .where('id', '=', id)
    .execute()
  await append(db, withFacts(entry, { attempt, replay, responseStatus }))
  return true
}

export const lapse: Table['lapse'] = async (db, now) => {
  const rows = await db
    .selectFrom('hitl')
    .select(['id', 'attempt', 'digest'])
    .where('replay', '=', 'inFlight')
    .where('lease_until', '<=', now)
    .orderBy('lease_until')
    .execute()
  for (const { id, attempt, digest } of rows) {
    await db.updateTable('hitl').set({ replay: 'unknown' }).where('id', '=', id).execute()
    await append(db, {
      at: now,
      actor: 'gateway',
      action: 'hitl.lapse',
      subject: id,
      requestId: null,
      details: { attempt, digest },
    })
  }
  return rows.map(row => row.id)
}

/** An update of the item if `attempt` still holds the claim on it. */
function held(db: Db, id: string, attempt: number) {
  return db.updateTable('hitl').where('id', '=', id).where('attempt', '=', attempt).where('lease_until', 'is not', null)
}

async function findAgain(db: Db, id: string): Promise<HitlItem> {
  const item = await find(db, id)
  if (item === undefined) throw new Error('cannot happen: an item vanished inside its transaction')
  return item
}
