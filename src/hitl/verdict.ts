/**
 * Rules for every verdict: who may give it, what a comment may be, and the refusal of a second verdict.
 */

import { escapeLines } from '../base/deceptive.ts'
import { type Refusal, refuse } from '../errors.ts'
import { type HitlBrief, refuseStore, StoreError } from '../storage/store.ts'
import { auditEntry, type HitlOptions, type Person, type Verdict } from './model.ts'

/** Longest comment, in characters (code points). */
const maxComment = 2_000

/** Deny: the request is discarded for good (spec 3.2). */
export async function deny(options: HitlOptions, id: string, verdict: Verdict): Promise<HitlBrief | Refusal> {
  const item = await verdictOn(options, id, verdict)
  if ('refusal' in item) return item
  // A late verdict writes nothing; of two at the same moment the store accepts one.
  if (item.status !== 'Pending') return decided(item)
  const problem = voterProblem(options, item, verdict.reviewer.id)
  if (problem !== undefined) return problem
  const now = options.clock.now()
  const entry = verdictEntry(now, verdict, { action: 'hitl.deny', item })
  const outcome = await options.store.hitl.deny(
    id,
    { reviewer: verdict.reviewer.id, comment: verdict.comment ?? null, now },
    entry,
  )
  if (outcome === 'notFound') return refuse('not_found')
  if ('lost' in outcome) return decided(outcome.lost)
  options.events.publish('denied', id, { agentId: item.agentId, by: verdict.reviewer.id })
  return outcome.denied
}

/** The item if this reviewer may decide it; the refusal, audited, when not. */
export async function verdictOn(options: HitlOptions, id: string, verdict: Verdict): Promise<HitlBrief | Refusal> {
  if ([...(verdict.comment ?? '')].length > maxComment) return commentTooLong
  const now = options.clock.now()
  const item = await options.store.hitl.brief(id, now)
  if (item === undefined) return refuse('not_found')
  const barred = fourEyes(options, item, verdict.reviewer)
  if (barred === undefined) return item
  await options.noteRefusal(verdictEntry(now, verdict, { action: 'hitl.refused', item, why: barred.refusal }))
  return barred
}

/** Why this reviewer may not decide the item now: it may have waited since it was let in. */
export function voterProblem(options: HitlOptions, item: HitlBrief, reviewerId: string): Refusal | undefined {
  const reviewer = options.reviewerOf(reviewerId)
  return reviewer === undefined ? refuse('forbidden') : fourEyes(options, item, reviewer)
}

/** Nobody decides a request of their own; with `owner`, of their own owner either. */
function fourEyes(options: HitlOptions, item: HitlBrief, reviewer: Person): Refusal | undefined {
  if (item.agentId === reviewer.id) return refuse('own_request')
  if (options.settings.FourEyes === 'owner' && item.ownerId === reviewer.ownerId) {
    return refuse('own_request', 'Reviewers must not decide requests of the same owner. Ask another reviewer.')
  }
  return undefined
}

const commentTooLong = refuse('invalid_body', `A comment has at most ${maxComment} characters.`, {
  errors: [{ field: 'comment', message: `at most ${maxComment} characters`, code: 'too_long' }],
})

/** The refusal of a verdict on a request that was already decided or withdrawn: the outcome on record. */
export function decided(item: HitlBrief): Refusal {
  return refuse(item.status === 'Withdrawn' ? 'withdrawn' : 'already_decided', undefined, {
    members: {
      hitlId: item.id,
      hitlStatus: item.status,
      replay: item.replay,
      attempt: item.attempt,
      decidedBy: item.decidedBy,
      decidedAt: item.decidedAt === null ? null : new Date(item.decidedAt).toISOString(),
      comment: item.comment === null ? null : escapeLines(item.comment),
      responseStatus: item.responseStatus,
    },
  })
}

/** The audit entry of a verdict; it names the request by its digest. */
export function verdictEntry(
  now: number,
  verdict: Verdict,
  done: { readonly action: string; readonly item: HitlBrief } & Readonly<Record<string, unknown>>,
) {
  const { action, item, ...more } = done
  return auditEntry(
    now,
    { actor: verdict.reviewer.id, requestId: verdict.requestId },
    {
      action,
      subject: item.id,
      details: { agentId: item.agentId, digest: item.digest, comment: verdict.comment ?? null, ...more },
    },
  )
}

/** Turns a failure of the store into a refusal: nothing was done. */
export async function orUnavailable<T>(work: Promise<T>): Promise<T | Refusal> {
  try {
    return await work
  } catch (error) {
    if (error instanceof StoreError) return refuseStore(error)
    throw error
  }
}
