/**
 * Changes of an item after it was suspended. Each is one conditional update: of several callers at once, one succeeds.
 */
import type { Operations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { changed, locked, statement } from '../statement.ts'
import type { AuditEntry, HitlBrief, HitlTable, ReplayState } from '../store.ts'
import type { Unit } from '../unit.ts'
import { withFacts } from './audit.ts'
import { find, findLive, findToChange, itemColumns, toBrief, undecided } from './items.ts'

type Table = Operations<'hitl'>
type Claim = Parameters<HitlTable['claim']>[1]

export const claim: Table['claim'] = async (unit, id, claim, entry) => {
  const item = await findToChange(unit.db, id, claim.now)
  if (item === undefined) return 'notFound'
  const again = claim.resend && item.status === 'Approved'
  return again ? claimAgain(unit, item, claim, entry) : approve(unit, item, claim, entry)
}

interface Approval {
  readonly id: string
  readonly now: number
  /** JSON arrays: the reviewers who approved, now and before. */
  readonly approvedBy: string
  readonly approvedBefore: string
}

/** Fails when another reviewer has decided or approved in between. */
const asItWas = (db: Db, { id, now, approvedBefore }: Approval) =>
  db
    .updateTable('hitl')
    .where('id', '=', id)
    .where('status', '=', 'Pending')
    .where('expiresAt', '>', now)
    .where('approvedBy', '=', approvedBefore)

const countApproval = statement((db, values: Approval) =>
  asItWas(db, values).set({ approvedBy: values.approvedBy }).returning(itemColumns),
)

interface LastApproval extends Approval {
  /** Unknown when it came back from a backup, else null. */
  readonly before: ReplayState | null
  readonly attempt: number
  readonly leaseUntil: number
  readonly reviewer: string
  readonly comment: string | null
}

const claimItem = statement((db, values: LastApproval) =>
  asItWas(db, values)
    .set({
      approvedBy: values.approvedBy,
      status: 'Approved',
      replay: 'inFlight',
      replayBefore: values.before,
      attempt: values.attempt,
      leaseUntil: values.leaseUntil,
      decidedBy: values.reviewer,
      decidedAt: values.now,
      comment: values.comment,
    })
    .returning(itemColumns),
)

async function approve(unit: Unit, item: HitlBrief, claim: Claim, entry: AuditEntry) {
  const { db } = unit
  const { id, approvalsNeeded, digest } = item
  // A request from a backup may have been sent since then: an approval must say `resend`.
  if (item.status !== 'Pending' || claim.resend !== (item.replay === 'unknown')) return { lost: item }
  if (item.approvedBy.includes(claim.reviewer)) return { waiting: item }
  const approvedBy = [...item.approvedBy.filter(id => !claim.withdrawn.includes(id)), claim.reviewer]
  const approval = {
    id,
    now: claim.now,
    approvedBy: JSON.stringify(approvedBy),
    approvedBefore: JSON.stringify(item.approvedBy),
  }
  const enough = approvedBy.length >= approvalsNeeded
  const attempt = enough ? item.attempt + 1 : item.attempt
  const result = enough
    ? await claimItem(db, { ...approval, ...claim, attempt, before: item.replay })
    : await countApproval(db, approval)
  const [after] = result.rows.map(toBrief)
  if (after === undefined) return { lost: await findAgain(db, id) }
  unit.audit(withFacts(entry, { digest, approvals: approvedBy.length, approvalsNeeded, attempt }))
  if (!enough) return { waiting: after }
  unit.count(item.agentId, -1)
  return { claimed: after }
}

interface Resend {
  readonly id: string
  readonly attempt: number
  readonly next: number
  readonly leaseUntil: number
}

const claimItemAgain = statement((db, { id, attempt, next, leaseUntil }: Resend) =>
  db
    .updateTable('hitl')
    .set(eb => ({
      replayBefore: eb.ref('replay'),
      replay: 'inFlight',
      attempt: next,
      leaseUntil: leaseUntil,
      responseStatus: null,
    }))
    .where('id', '=', id)
    .where('attempt', '=', attempt)
    .where('status', '=', 'Approved')
    .where('replay', 'in', ['failed', 'unknown'])
    .returning(itemColumns),
)

/** The verdict stays that of the first claim; who sends again is in the audit trail. */
async function claimAgain(unit: Unit, { id, attempt, digest }: HitlBrief, { leaseUntil }: Claim, entry: AuditEntry) {
  const { db } = unit
  const { rows } = await claimItemAgain(db, { id, attempt, next: attempt + 1, leaseUntil })
  const [after] = rows.map(toBrief)
  if (after === undefined) return { lost: await findAgain(db, id) }
  unit.audit(withFacts(entry, { digest, resend: true, attempt: after.attempt }))
  return { claimed: after }
}

interface Closing {
  readonly id: string
  readonly status: 'Denied' | 'Withdrawn'
  readonly by: string
  readonly now: number
  readonly comment: string | null
}

/** Closes a pending item for good. */
const closeItem = statement((db, { id, status, by, now, comment }: Closing) =>
  db
    .updateTable('hitl')
    .set({ status, decidedBy: by, decidedAt: now, comment })
    .where('id', '=', id)
    .where('status', '=', 'Pending')
    .where('expiresAt', '>', now)
    .returning(itemColumns),
)

const dropSealed = statement((db, { id }: { id: string }) =>
  db.updateTable('hitl_sealed').set({ request: null }).where('id', '=', id),
)

/** Undefined when somebody else was first. */
async function close(unit: Unit, closing: Closing, entry: AuditEntry): Promise<HitlBrief | undefined> {
  const { db } = unit
  const { id } = closing
  const [item] = (await closeItem(db, closing)).rows.map(toBrief)
  if (item === undefined) return undefined
  unit.send(dropSealed(db, { id }))
  unit.count(item.agentId, -1)
  unit.audit(withFacts(entry, { digest: item.digest }))
  return item
}

export const deny: Table['deny'] = async (unit, id, { reviewer, now, comment }, entry) => {
  const denied = await close(unit, { id, status: 'Denied', by: reviewer, now, comment }, entry)
  if (denied !== undefined) return { denied }
  const lost = await findLive(unit.db, id, now)
  return lost === undefined ? 'notFound' : { lost }
}

const giveTime = statement((db, { id, now, expiresAt }: { id: string; now: number; expiresAt: number }) =>
  db
    .updateTable('hitl')
    .set({ expiresAt })
    .where('id', '=', id)
    .where('status', '=', 'Pending')
    .where('expiresAt', '>', now)
    .where('expiresAt', '<', expiresAt)
    .returning(itemColumns),
)

export const extend: Table['extend'] = async (unit, id, time, entry) => {
  const { db } = unit
  const before = await findToChange(db, id, time.now)
  if (before === undefined) return 'notFound'
  const [extended] = (await giveTime(db, { id, ...time })).rows.map(toBrief)
  if (extended === undefined) return { lost: before }
  unit.audit(withFacts(entry, { digest: extended.digest, from: isoTime(before), to: isoTime(extended) }))
  return { extended }
}

const isoTime = ({ expiresAt }: HitlBrief) => new Date(expiresAt).toISOString()

const freeKey = statement((db, { id }: { id: string }) =>
  db.updateTable('hitl').set({ idempotencyKey: null, repeatDigest: null }).where('id', '=', id),
)

export const withdraw: Table['withdraw'] = async (unit, id, { agentId, now }, entry) => {
  const before = await findToChange(unit.db, id, now)
  if (before?.agentId !== agentId) return 'notFound'
  const withdrawn = await close(unit, { id, status: 'Withdrawn', by: agentId, now, comment: null }, entry)
  if (withdrawn === undefined) return { lost: before }
  unit.send(freeKey(unit.db, { id }))
  return { withdrawn }
}

interface Attempt {
  readonly id: string
  readonly attempt: number
}

const releaseFirst = statement((db, { id, attempt }: Attempt) =>
  held(db, id, attempt).set(undecided).where('replayBefore', 'is', null).returning('agentId'),
)

const releaseAgain = statement((db, { id, attempt }: Attempt) =>
  held(db, id, attempt)
    .set(eb => ({ replay: eb.ref('replayBefore'), replayBefore: null, leaseUntil: null }))
    .where('replayBefore', 'is not', null),
)

/** After a resend the item was Approved before the claim, and is again: the attempt before may have reached out. */
export const release: Table['release'] = async (unit, id, attempt, entry) => {
  const { db } = unit
  const [first] = (await releaseFirst(db, { id, attempt })).rows
  if (first !== undefined) unit.count(first.agentId, 1)
  else if (changed(await releaseAgain(db, { id, attempt })) === 0) return false
  unit.audit(withFacts(entry, { attempt }))
  return true
}

interface Outcome extends Attempt {
  readonly replay: ReplayState
  readonly responseStatus: number | null
}

const settleItem = statement((db, { id, attempt, replay, responseStatus }: Outcome) =>
  held(db, id, attempt).set({ replay, replayBefore: null, leaseUntil: null, responseStatus: responseStatus }),
)

const keepAnswer = statement((db, { id, response }: { id: string; response: Uint8Array | null }) =>
  db.updateTable('hitl_sealed').set({ response }).where('id', '=', id),
)

/** A claim holds until its outcome is written, also when its lease lapsed: a late answer is truer than `unknown`. */
export const settle: Table['settle'] = async (unit, id, attempt, outcome, entry) => {
  const { db } = unit
  const { replay, responseStatus, sealedResponse } = outcome
  if (changed(await settleItem(db, { id, attempt, replay, responseStatus })) === 0) return false
  if (replay === 'completed') unit.send(dropSealed(db, { id }))
  unit.send(keepAnswer(db, { id, response: sealedResponse }))
  unit.audit(withFacts(entry, { attempt, replay, responseStatus }))
  return true
}

const selectLapsed = statement((db, { now }: { now: number }) =>
  locked(db, inFlight(db).where('leaseUntil', '<=', now).orderBy('leaseUntil'), true),
)

const selectInFlight = statement((db, { id }: { id: string }) => locked(db, inFlight(db).where('id', '=', id)))

function inFlight(db: Db) {
  return db.selectFrom('hitl').select(['id', 'attempt', 'digest']).where('replay', '=', 'inFlight')
}

export const lapse: Table['lapse'] = async (unit, now, own) => {
  const { db } = unit
  const notDue = new Set([...own.held, ...own.over])
  const due = (await selectLapsed(db, { now })).rows.filter(({ id }) => !notDue.has(id))
  for (const id of own.over) due.push(...(await selectInFlight(db, { id })).rows)
  for (const { id, attempt, digest } of due) {
    await db.updateTable('hitl').set({ replay: 'unknown' }).where('id', '=', id).execute()
    unit.audit({
      at: now,
      actor: 'gateway',
      action: 'hitl.lapse',
      subject: id,
      requestId: null,
      details: { attempt, digest },
    })
  }
  return due.map(row => row.id)
}

/** An update of the item if `attempt` still holds the claim on it. */
function held(db: Db, id: string, attempt: number) {
  return db.updateTable('hitl').where('id', '=', id).where('attempt', '=', attempt).where('leaseUntil', 'is not', null)
}

async function findAgain(db: Db, id: string): Promise<HitlBrief> {
  const item = await find(db, id)
  if (item === undefined) throw new Error('cannot happen: an item vanished inside its transaction')
  return item
}
