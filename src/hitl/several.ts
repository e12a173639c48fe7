/**
 * One verdict on several requests, with an outcome for each. Approvals are for one group, so that the request that the
 * reviewer reads is like the others.
 */
import type { RefusalCode } from '../base/refusal-kinds.ts'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import type { HitlBrief } from '../storage/store.ts'
import { locationOf } from './grants.ts'
import type { Approval, Approved, Verdict } from './model.ts'

/** A request, and its digest as the reviewer saw it. */
interface ChosenRequest {
  readonly id: string
  readonly digest: string
}

export interface SeveralVerdicts extends Verdict {
  readonly verdict: 'approve' | 'deny'
  readonly items: readonly ChosenRequest[]
  /** Why the reviewer may not go on; checked before each verdict. */
  readonly problemNow: () => Refusal | undefined
}

export interface ItemOutcome {
  readonly id: string
  /** `counted`: further reviewers must approve. `sent`: the upstream answered. */
  readonly outcome: 'denied' | 'counted' | 'sent' | 'refused'
  readonly upstreamStatus?: number
  readonly status?: number
  readonly code?: RefusalCode
  readonly detail?: string
}

export interface SeveralParts {
  readonly find: (id: string) => Promise<HitlBrief | undefined>
  readonly approve: (id: string, approval: Approval) => Promise<Approved | Refusal>
  readonly deny: (id: string, verdict: Verdict) => Promise<HitlBrief | Refusal>
}

/** Requests that are sent at the same time. */
const atOnce = 4

/** In the order of the items. Refused as a whole when approvals are for more than one group. */
export async function decideSeveral(parts: SeveralParts, given: SeveralVerdicts): Promise<ItemOutcome[] | Refusal> {
  const { items, verdict } = given
  if (verdict === 'approve') {
    const found = await Promise.all(items.map(({ id }) => parts.find(id)))
    if (new Set(found.flatMap(item => (item === undefined ? [] : [groupOf(item)]))).size > 1) return ofSeveralGroups
  }
  const outcomes: ItemOutcome[] = []
  const queue = items.entries()
  const work = async () => {
    for (const [index, item] of queue) outcomes[index] = await decide(parts, item, given)
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return outcomes
}

const ofSeveralGroups = refuse(
  'invalid_body',
  'Approve requests of one agent, rule, method, origin and path at a time.',
  {
    errors: [{ field: 'items', message: 'must be of one agent, rule, method, origin and path' }],
  },
)

function groupOf({ agentId, policyName, rule, method, url }: HitlBrief): string {
  const { origin, path } = locationOf(url)
  return JSON.stringify([agentId, policyName, rule, method, origin, path])
}

async function decide(
  parts: SeveralParts,
  { id, digest }: ChosenRequest,
  given: SeveralVerdicts,
): Promise<ItemOutcome> {
  const { reviewer, comment, requestId } = given
  const verdict: Verdict = { reviewer, comment, requestId, digests: [digest] }
  const problem = given.problemNow()
  if (problem !== undefined) return refused(id, problem)
  if (given.verdict === 'deny') {
    const denied = await parts.deny(id, verdict)
    return isRefusal(denied) ? refused(id, denied) : { id, outcome: 'denied' }
  }
  const approved = await parts.approve(id, verdict)
  if (isRefusal(approved)) return refused(id, approved)
  if (approved.kind === 'waiting') return { id, outcome: 'counted' }
  // The answer is kept for the agent in any case.
  approved.body.destroy()
  return { id, outcome: 'sent', upstreamStatus: approved.status }
}

function refused(id: string, { refusal: code, status, detail }: Refusal): ItemOutcome {
  return { id, outcome: 'refused', status, code, detail }
}
