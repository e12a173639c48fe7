/**
 * Changes of an item after it was suspended. Each is one conditional update: of several callers at once, one succeeds.
 */
import type { HitlOperations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { AuditEntry, HitlBrief, HitlTable, ReplayState } from '../store.ts'
import type { Unit } from '../unit.ts'
import { withFacts } from './audit.ts'
import { measure } from './bytes.ts'
import { find, findLive, findToChange, itemColumns, toBrief } from './items.ts'
import { raiseLimit } from './spend.ts'

type Claim = Parameters<HitlTable['claim']>[1]

export const claim: HitlOperations['claim'] = async (unit, id, claim, entry) => {
  const item = await findToChange(unit.db, id, claim.now)
  if (item === undefined) return 'notFound'
  const again = claim.resend && item.status === 'Approved'
  return again ? claimAgain(unit, item, claim, entry) : approve(unit, item, claim, entry)
}

interface StoredApproval {
  readonly id: string
  readonly now: number
  /** JSON arrays: the reviewers who approved, now and before. */
  readonly approvedBy: string
  readonly approvedBefore: string
}

/** An update of an item that waits. */
const waiting = (db: Db, { id, now }: { readonly id: string; readonly now: number }) =>
  db.updateTable('hitl').where('id', '=', id).where('status', '=', 'Pending').where('expiresAt', '>', now)

/** Fails when another reviewer has decided or approved in between. */
const asItWas = (db: Db, { id, now, approvedBefore }: StoredApproval) =>
  waiting(db, { id, now }).where('approvedBy', '=', approvedBefore)

const countApproval = statement((db, values: StoredApproval) =>
  asItWas(db, values).set({ approvedBy: values.approvedBy }).returning(itemColumns),
)

interface LastApproval extends StoredApproval, Pick<Resend, 'attempt' | 'leaseUntil' | 'owner'> {
  /** Unknown when it came back from a backup, else null. */
  readonly before: ReplayState | null
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
      owner: values.owner,
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
  // The item is locked: nothing keeps it from being claimed after this.
  const raised = enough && claim.raise !== undefined && (await raiseLimit(db, claim.raise.terms))
  if (raised !== false && raised !== 'raised') return 'notRaised'
  const attempt = enough ? item.attempt + 1 : item.attempt
  const result = enough
    ? await claimItem(db, { ...approval, ...claim, attempt, before: item.replay })
    : await countApproval(db, approval)
  const [after] = result.rows.map(toBrief)
  if (after === undefined) return { lost: await lostTo(db, id, raised) }
  unit.audit(withFacts(entry, { digest, approvals: approvedBy.length, approvalsNeeded, attempt }))
  if (raised && claim.raise !== undefined) unit.audit(claim.raise.entry)
  const by = { agentId: item.agentId, by: claim.reviewer }
  if (!enough) {
    unit.event({ type: 'approval', at: claim.now, hitlId: id, data: { ...by, approvedBy, approvalsNeeded } })
    return { waiting: after }
  }
  unit.count(item.agentId, { waiting: -1 })
  unit.event({ type: 'approved', at: claim.now, hitlId: id, data: { ...by, resend: claim.resend } })
  return { claimed: after }
}

interface Resend {
  readonly id: string
  readonly attempt: number
  readonly next: number
  readonly leaseUntil: number
  readonly owner: string
}

const claimItemAgain = statement((db, { id, attempt, next, leaseUntil, owner }: Resend) =>
  db
    .updateTable('hitl')
    .set(eb => ({
      replayBefore: eb.ref('replay'),
      replay: 'inFlight',
      attempt: next,
      leaseUntil,
      owner,
      responseStatus: null,
    }))
    .where('id', '=', id)
    .where('attempt', '=', attempt)
    .where('status', '=', 'Approved')
    .where('replay', 'in', ['failed', 'unknown'])
    .returning(itemColumns),
)

/** The verdict stays that of the first claim; who sends again is in the audit trail. */
async function claimAgain(unit: Unit, item: HitlBrief, claim: Claim, entry: AuditEntry) {
  const { db } = unit
  const { leaseUntil, owner, reviewer, now } = claim
  const { id, attempt, digest, agentId } = item
  const { rows } = await claimItemAgain(db, { id, attempt, next: attempt + 1, leaseUntil, owner })
  const [after] = rows.map(toBrief)
  if (after === undefined) return { lost: await findAgain(db, id) }
  unit.audit(withFacts(entry, { digest, resend: true, attempt: after.attempt }))
  unit.event({ type: 'approved', at: now, hitlId: id, data: { agentId, by: reviewer, resend: true } })
  return { claimed: after }
}

interface ClosingVerdict {
  readonly id: string
  readonly status: 'Denied' | 'Withdrawn'
  readonly by: string
  readonly now: number
  readonly comment: string | null
}

/** Closes a pending item for good. */
const closeItem = statement((db, { id, status, by, now, comment }: ClosingVerdict) =>
  waiting(db, { id, now }).set({ status, decidedBy: by, decidedAt: now, comment }).returning(itemColumns),
)

export const dropSealed = statement((db, { id }: { id: string }) =>
  db.updateTable('hitl_sealed').set({ request: null }).where('id', '=', id),
)

/** Undefined when somebody else was first. */
async function close(unit: Unit, closing: ClosingVerdict, entry: AuditEntry): Promise<HitlBrief | undefined> {
  const { db } = unit
  const { id } = closing
  const [item] = (await closeItem(db, closing)).rows.map(toBrief)
  if (item === undefined) return undefined
  unit.send(dropSealed(db, { id }))
  unit.count(item.agentId, { waiting: -1 })
  unit.audit(withFacts(entry, { digest: item.digest }))
  return item
}

export const deny: HitlOperations['deny'] = async (unit, id, { reviewer, now, comment }, entry) => {
  const denied = await close(unit, { id, status: 'Denied', by: reviewer, now, comment }, entry)
  if (denied !== undefined) {
    unit.send(measure(unit.db, { id }))
    unit.event({ type: 'denied', at: now, hitlId: id, data: { agentId: denied.agentId, by: reviewer } })
    return { denied }
  }
  const lost = await findLive(unit.db, id, now)
  return lost === undefined ? 'notFound' : { lost }
}

const giveTime = statement((db, { id, now, expiresAt }: { id: string; now: number; expiresAt: number }) =>
  waiting(db, { id, now }).set({ expiresAt }).where('expiresAt', '<', expiresAt).returning(itemColumns),
)

export const extend: HitlOperations['extend'] = async (unit, id, time, entry) => {
  const { db } = unit
  const before = await findToChange(db, id, time.now)
  if (before === undefined) return 'notFound'
  const [extended] = (await giveTime(db, { id, ...time })).rows.map(toBrief)
  if (extended === undefined) return { lost: before }
  const { digest, agentId } = extended
  const expiresAt = isoTime(extended)
  unit.audit(withFacts(entry, { digest, from: isoTime(before), to: expiresAt }))
  unit.event({ type: 'extended', at: time.now, hitlId: id, data: { agentId, by: entry.actor, expiresAt } })
  return { extended }
}

const isoTime = ({ expiresAt }: HitlBrief) => new Date(expiresAt).toISOString()

const freeKey = statement((db, { id }: { id: string }) =>
  db.updateTable('hitl').set({ idempotencyKey: null, repeatDigest: null }).where('id', '=', id),
)

/** Nobody decides it any more. Kept as long as the line is, an agent could fill the disk by holding and withdrawing. */
const emptyShown = statement((db, { id }: { id: string }) =>
  db.updateTable('hitl_shown').set({ headers: '{}', body: '', places: '[]' }).where('id', '=', id),
)

export const withdraw: HitlOperations['withdraw'] = async (unit, id, { agentId, now }, entry) => {
  const before = await findToChange(unit.db, id, now)
  if (before?.agentId !== agentId) return 'notFound'
  const withdrawn = await close(unit, { id, status: 'Withdrawn', by: agentId, now, comment: null }, entry)
  if (withdrawn === undefined) return { lost: before }
  unit.send(freeKey(unit.db, { id }))
  unit.send(emptyShown(unit.db, { id }))
  unit.send(measure(unit.db, { id }))
  unit.event({ type: 'withdrawn', at: now, hitlId: id, data: { agentId, cause: entry.details['cause'] } })
  return { withdrawn }
}

function lostTo(db: Db, id: string, raised: 'raised' | false): Promise<HitlBrief> {
  if (raised !== false) throw new Error('cannot happen: an item was changed although it was locked')
  return findAgain(db, id)
}

async function findAgain(db: Db, id: string): Promise<HitlBrief> {
  const item = await find(db, id)
  if (item === undefined) throw new Error('cannot happen: an item vanished inside its transaction')
  return item
}
