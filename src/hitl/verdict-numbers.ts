/** How people decided within a time: how fast, who, and what nobody decided. */
import type { HitlEnd } from '../storage/store.ts'
import type { HitlOptions } from './model.ts'

export interface ReviewerNumbers {
  readonly id: string
  readonly verdicts: number
  readonly medianSeconds: number
}

export interface VerdictNumbers {
  /** Later than was asked for when what is older was deleted, or is more than one look reads; milliseconds. */
  readonly since: number
  readonly approved: number
  readonly denied: number
  readonly expired: number
  readonly withdrawn: number
  /** Seconds from the request to its verdict; null without a verdict. */
  readonly medianSeconds: number | null
  /** Those with the most verdicts first. */
  readonly reviewers: readonly ReviewerNumbers[]
}

/** Reviewers that are listed. */
const maxReviewers = 50

/** Of the last `ms`. */
export async function verdictsWithin(
  { store, clock, settings }: Pick<HitlOptions, 'store' | 'clock' | 'settings'>,
  ms: number,
): Promise<VerdictNumbers> {
  const wanted = clock.now() - Math.min(ms, settings.RetentionSeconds * 1_000)
  const { ends, isWhole } = await store.hitl.ends(wanted)
  return { since: isWhole ? wanted : (ends.at(-1)?.decidedAt ?? wanted), ...verdictNumbers(ends) }
}

export function verdictNumbers(ends: readonly HitlEnd[]): Omit<VerdictNumbers, 'since'> {
  const count = (wanted: HitlEnd['status']) => ends.filter(({ status }) => status === wanted).length
  const decided = ends.filter(({ status }) => status === 'Approved' || status === 'Denied')
  const reviewers = [...Map.groupBy(decided, ({ decidedBy }) => decidedBy ?? '')]
    .map(([id, list]) => ({ id, verdicts: list.length, medianSeconds: medianSeconds(list) }))
    .sort((left, right) => right.verdicts - left.verdicts)
  return {
    ...{ approved: count('Approved'), denied: count('Denied') },
    ...{ expired: count('Expired'), withdrawn: count('Withdrawn') },
    medianSeconds: decided.length === 0 ? null : medianSeconds(decided),
    reviewers: reviewers.slice(0, maxReviewers),
  }
}

/** Of an even number the upper one of the two in the middle. */
function medianSeconds(decided: readonly HitlEnd[]): number {
  const times = decided.map(({ createdAt, decidedAt }) => decidedAt - createdAt).sort((left, right) => left - right)
  return (times[times.length >> 1] ?? 0) / 1_000
}
