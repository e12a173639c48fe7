/** One verdict on several requests, with exceptions. */
import { call, type Failure } from '../api.ts'
import { ownText } from '../session.ts'
import type { HitlSummary, VerdictOutcome } from '../types.ts'

export type Verdict = 'approve' | 'deny'
/** `leave`: it goes on waiting. */
export type Choice = Verdict | 'leave'

export const choiceTexts: Readonly<Record<Choice, string>> = {
  approve: 'Approve',
  deny: 'Deny',
  leave: 'Leave it waiting',
}

/** What may be decided on one. What the gateway would refuse is not among it. */
export function choicesOn(view: HitlSummary, verdict: Verdict, isBarred: boolean): readonly Choice[] {
  if (ownText(view) !== undefined) return ['leave']
  return verdict === 'approve' && !isBarred ? ['approve', 'deny', 'leave'] : ['deny', 'leave']
}

interface Decided {
  readonly outcomes: readonly VerdictOutcome[]
  /** Why a part of them was not decided. */
  readonly failure: Failure | undefined
}

/** Denials first: they send nothing. Each verdict is for the request that was listed, by its digest. */
export async function decideEach(
  views: readonly HitlSummary[],
  choiceOf: (view: HitlSummary) => Choice,
  comment: string,
): Promise<Decided> {
  const outcomes: VerdictOutcome[] = []
  for (const verdict of ['deny', 'approve'] as const) {
    const items = views.filter(view => choiceOf(view) === verdict).map(({ id, digest }) => ({ id, digest }))
    if (items.length === 0) continue
    const body = { verdict, items, ...(comment !== '' && { comment }) }
    const answer = await call<{ readonly outcomes: readonly VerdictOutcome[] }>('POST', '/hitl/verdicts', { body })
    if (!answer.ok) return { outcomes, failure: answer.failure }
    outcomes.push(...answer.data.outcomes)
  }
  return { outcomes, failure: undefined }
}
