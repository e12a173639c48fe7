/**
 * Verdicts on held requests: a reviewer approves or denies, the agent withdraws. If several verdicts arrive at the same
 * time, the store accepts one; the others are refused with the recorded outcome.
 */
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import type { ClaimedRaise, EndedCall, GrantRecord, HitlBrief } from '../storage/store.ts'
import type { ReplayAttempts } from './attempts.ts'
import { grantProblem, makeGrant, type NewGrant } from './grants.ts'
import {
  type Approval,
  type Approved,
  decided,
  type HitlOptions,
  type Person,
  type StoredDecision,
  type Verdict,
  verdictEntry,
} from './model.ts'
import { askerProblem, type OpenedRequest, openRequest, type ReplayAttempt, replay, storedRequest } from './replay.ts'

/** Longest comment, in characters (code points). */
const maxComment = 2_000

const mayBeSent =
  'This request was brought back from a backup and may have been sent since. Approve it with "resend": true to send it.'

/**
 * Approves, and with the last approval sends the request. Only the call that claims the item sends it; the others are
 * refused with the recorded outcome.
 */
export async function approve(
  options: HitlOptions,
  id: string,
  approval: Approval,
  attempts: ReplayAttempts,
): Promise<Approved | Refusal> {
  const item = await verdictOn(options, id, approval)
  if (isRefusal(item)) return item
  const resend = approval.resend === true
  if (!isClaimable(item, resend)) return notClaimable(item)
  const problem = askerProblem(options, item) ?? (approval.grant && grantProblem(item, approval.grant, 'grant.'))
  if (problem !== undefined) return problem
  const raise = raiseOf(options, item, approval)
  if (isRefusal(raise)) return raise
  const opened = await openRequest(options, item, approval)
  if (isRefusal(opened)) return opened

  const lease = attempts.begin(id)
  return await lease.during(claimAndSend(options, { item, approval, lease }, { ...opened, raise }))
}

/** The raise that is stored with the claim; undefined when the approval has none. */
function raiseOf(options: HitlOptions, item: HitlBrief, approval: Approval): ClaimedRaise | Refusal | undefined {
  const { raise, resend } = approval
  if (raise === undefined) return undefined
  const { budget }: Partial<StoredDecision> = JSON.parse(item.decision)
  if (!budget || resend === true) return notAtLimit
  return options.raiseOf(item, { ...approval, budget, amount: raise.amount })
}

const notAtLimit = refuse('wrong_state', 'Only a request that waits at the limit of a budget can raise it.')
const raisedEnough = refuse('invalid_budget', 'Others have raised this budget meanwhile, as far as it may be raised.')

/** @param wanted the item before the claim */
async function claimAndSend(
  options: HitlOptions,
  wanted: ReplayAttempt,
  { raise, ...opened }: OpenedRequest & { readonly raise: ClaimedRaise | undefined },
): Promise<Approved | Refusal> {
  const { item, approval, lease } = wanted
  const problem = voterProblem(options, item, approval.reviewer.id)
  if (problem !== undefined) return problem
  // Earlier votes of reviewers who may no longer vote do not count.
  const withdrawn = item.approvedBy.filter(id => voterProblem(options, item, id) !== undefined)
  const now = options.clock.now()
  const resend = approval.resend === true
  const { id: owner, name: gateway } = options.member
  const outcome = await options.store.hitl.claim(
    item.id,
    {
      reviewer: approval.reviewer.id,
      comment: approval.comment ?? null,
      now,
      leaseUntil: now + options.settings.LeaseSeconds * 1_000,
      ...{ owner, resend, withdrawn, raise },
    },
    verdictEntry(now, approval, {
      ...{ action: 'hitl.approve', item, gateway, resend },
      ...(withdrawn.length > 0 && { withdrawn }),
    }),
  )
  if (outcome === 'notFound') return refuse('not_found')
  if (outcome === 'notRaised') return raisedEnough
  if ('lost' in outcome) return decided(outcome.lost)
  if ('waiting' in outcome) return { kind: 'waiting', item: outcome.waiting }
  if (!resend) options.onDecided(outcome.claimed, 'approved')
  return await replay(options, { item: outcome.claimed, approval, lease }, opened)
}

function isClaimable(item: HitlBrief, resend: boolean): boolean {
  if (!resend) return item.status === 'Pending' && item.replay === null
  return (
    (item.status === 'Pending' || item.status === 'Approved') && (item.replay === 'failed' || item.replay === 'unknown')
  )
}

function notClaimable(item: HitlBrief): Refusal {
  if (item.status !== 'Pending') return decided(item)
  if (item.replay === 'unknown') return refuse('wrong_state', mayBeSent)
  return refuse('wrong_state', 'Only a request that was sent without a known outcome can be sent again.')
}

/** Deny: the request is discarded for good (spec 3.2). */
export async function deny(options: HitlOptions, id: string, verdict: Verdict): Promise<HitlBrief | Refusal> {
  const item = await verdictOn(options, id, verdict)
  if (isRefusal(item)) return item
  // A late verdict writes nothing. The store decides between two verdicts at the same time.
  if (item.status !== 'Pending') return decided(item)
  const problem = voterProblem(options, item, verdict.reviewer.id)
  if (problem !== undefined) return problem
  // The denial discards it.
  const request = options.onDenied && (await storedRequest(options, item))
  const now = options.clock.now()
  const entry = verdictEntry(now, verdict, { action: 'hitl.deny', item })
  const outcome = await options.store.hitl.deny(
    id,
    { reviewer: verdict.reviewer.id, comment: verdict.comment ?? null, now },
    entry,
  )
  if (outcome === 'notFound') return refuse('not_found')
  if ('lost' in outcome) return decided(outcome.lost)
  options.noteVerdict(item.agentId, 'humanDenial')
  options.onDecided(item, 'denied')
  if (request !== undefined) options.onDenied?.(item, request)
  return outcome.denied
}

/**
 * A grant from a request that was approved before, for what a grant given with the approval is for. `already_exists` when
 * a grant has the id.
 */
export async function grantLater(
  options: HitlOptions,
  id: string,
  { terms, ...verdict }: Verdict & { readonly terms: NewGrant },
): Promise<GrantRecord | Refusal> {
  const item = await verdictOn(options, id, verdict)
  if (isRefusal(item)) return item
  if (item.status !== 'Approved' || item.replay !== 'completed') return notAnswered
  const problem = voterProblem(options, item, verdict.reviewer.id) ?? askerProblem(options, item)
  const refused = problem ?? grantProblem(item, terms, '')
  if (refused !== undefined) return refused
  const { grant, entry } = makeGrant(options.clock.now(), item, verdict, terms)
  return (await options.store.grants.insert(grant, entry)) ? grant : refuse('already_exists')
}

const notAnswered = refuse('wrong_state', 'Only a request that was approved and answered can be granted afterwards.')

/** Longest life of a request that reviewers extend, milliseconds. */
const longestLife = 24 * 3_600_000

/** Extends the time of a pending request. */
export async function extend(
  options: HitlOptions,
  id: string,
  { minutes, ...verdict }: Pick<Verdict, 'reviewer' | 'requestId'> & { readonly minutes: number },
): Promise<HitlBrief | Refusal> {
  const item = await verdictOn(options, id, verdict)
  if (isRefusal(item)) return item
  if (item.status !== 'Pending') return decided(item)
  const expiresAt = item.expiresAt + minutes * 60_000
  if (expiresAt > item.createdAt + longestLife) {
    return refuse('wrong_state', 'A request waits 24 hours at most. Decide it, or let it expire.')
  }
  const problem = voterProblem(options, item, verdict.reviewer.id)
  if (problem !== undefined) return problem
  const now = options.clock.now()
  const entry = verdictEntry(now, verdict, { action: 'hitl.extend', item })
  const outcome = await options.store.hitl.extend(id, { now, expiresAt }, entry)
  if (outcome === 'notFound') return refuse('not_found')
  // Another reviewer has already extended it by the same time.
  if ('lost' in outcome) return outcome.lost.status === 'Pending' ? outcome.lost : decided(outcome.lost)
  return outcome.extended
}

/** The item if this reviewer may decide it; the refusal, audited, when not. */
async function verdictOn(options: HitlOptions, id: string, verdict: Verdict): Promise<HitlBrief | Refusal> {
  if ([...(verdict.comment ?? '')].length > maxComment) return commentTooLong
  const now = options.clock.now()
  const item = await options.store.hitl.brief(id, now)
  if (item === undefined) return refuse('not_found')
  const barred = fourEyes(options, item, verdict.reviewer)
  if (barred === undefined) return verdict.digests?.includes(item.digest) === false ? refuse('not_as_seen') : item
  await options.noteRefusal(verdictEntry(now, verdict, { action: 'hitl.refused', item, why: barred.refusal }))
  return barred
}

/** Why this reviewer may not decide the item now. Rights may have changed since the call was admitted. */
function voterProblem(options: HitlOptions, item: HitlBrief, reviewerId: string): Refusal | undefined {
  const reviewer = options.reviewerOf(reviewerId)
  return reviewer === undefined ? refuse('forbidden') : fourEyes(options, item, reviewer)
}

/** Reviewers must not decide their own requests, nor, with `owner`, those of the same owner. */
function fourEyes(options: HitlOptions, item: HitlBrief, reviewer: Person): Refusal | undefined {
  if (item.agentId === reviewer.id) return refuse('own_request')
  if (options.settings.FourEyes === 'owner' && item.ownerId === reviewer.ownerId) {
    return refuse('own_request', 'Reviewers must not decide requests of the same owner. Ask another reviewer.')
  }
  return undefined
}

const commentTooLong = refuse('invalid_body', `A comment must have at most ${maxComment} characters.`, {
  errors: [{ field: 'comment', message: `must have at most ${maxComment} characters`, code: 'too_long' }],
})

export interface Withdrawal {
  readonly agentId: string
  readonly requestId: string | null
  /** `asked`: DELETE /hitl/{id}. `cancelled`: notifications/cancelled of MCP. */
  readonly cause: 'asked' | 'cancelled'
}

/** The withdrawn item, also when it was withdrawn before; `not_found` when the agent has no such request. */
export async function withdraw(options: HitlOptions, id: string, withdrawal: Withdrawal): Promise<HitlBrief | Refusal> {
  const { agentId } = withdrawal
  const now = options.clock.now()
  const outcome = await options.store.hitl.withdraw(id, { agentId, now }, withdrawEntry(now, id, withdrawal))
  if (outcome === 'notFound') return refuse('not_found')
  if ('lost' in outcome) return outcome.lost.status === 'Withdrawn' ? outcome.lost : decided(outcome.lost)
  options.onDecided(outcome.withdrawn, 'withdrawn')
  return outcome.withdrawn
}

function withdrawEntry(at: number, subject: string, by: Omit<Withdrawal, 'cause'> & { readonly cause: string }) {
  const { agentId, requestId, cause } = by
  return { at, actor: agentId, requestId, action: 'hitl.withdraw', subject, details: { agentId, cause } }
}

/** Call it when a waiting call has ended: the request is withdrawn if nobody would get the outcome. */
export async function leave(
  { store, clock, onDecided }: Pick<HitlOptions, 'store' | 'clock' | 'onDecided'>,
  id: string,
  { requestId, ...call }: Omit<EndedCall, 'now'> & { readonly requestId: string | null },
): Promise<void> {
  const now = clock.now()
  const entry = withdrawEntry(now, id, { agentId: call.agentId, requestId, cause: 'left' })
  const outcome = await store.hitl.leave(id, { ...call, now }, entry)
  if (typeof outcome === 'object' && 'withdrawn' in outcome) onDecided(outcome.withdrawn, 'withdrawn')
}
