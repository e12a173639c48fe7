import { isRefusal, type Refusal } from '../base/refusals.ts'
import type { Approval, Approved, Verdict } from '../hitl/model.ts'
import type { SeveralVerdicts } from '../hitl/several.ts'
import { inertHead } from '../http/inert.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import { bodyOf, doneUnlessRefused, type Handlers, ifMatch, type ManagementCall, replyOf, timeText } from './call.ts'
import type { ManagementParts } from './parts.ts'

/** What reviewers do with held requests. */
export function verdictHandlers({ hitl: { queue } }: ManagementParts): Handlers['guarded'] {
  return {
    async approveRequest(call) {
      const { comment, resend, grant, raise } = bodyOf<Partial<Approval> | undefined>(call) ?? {}
      const approved = await queue.approve(call.named, { ...verdict(call), comment, resend, grant, raise })
      return isRefusal(approved) ? approved : approvedReply(approved)
    },
    async denyRequest(call): Promise<Reply | Refusal> {
      const { comment } = bodyOf<Partial<Approval> | undefined>(call) ?? {}
      return doneUnlessRefused(await queue.deny(call.named, { ...verdict(call), comment }))
    },
    async decideRequests(call): Promise<Reply | Refusal> {
      const given = bodyOf<Pick<SeveralVerdicts, 'verdict' | 'comment' | 'items'>>(call)
      const outcomes = await queue.decideSeveral({ ...given, ...voter(call), problemNow: call.problemNow })
      return replyOf(outcomes, found => ({ outcomes: found }))
    },
    async extendRequest(call): Promise<Reply | Refusal> {
      const { minutes = 5 } = bodyOf<{ readonly minutes?: number } | undefined>(call) ?? {}
      const extended = await queue.extend(call.named, { ...voter(call), minutes })
      return replyOf(extended, ({ id, expiresAt }) => ({ id, expiresAt: timeText(expiresAt) }))
    },
  }
}

function approvedReply(approved: Approved): Reply {
  if (approved.kind === 'waiting') {
    const { id, status, approvedBy, approvalsNeeded } = approved.item
    return jsonReply(202, { id, status, approvals: approvedBy.length, approvalsNeeded })
  }
  const { status, rawHeaders } = inertHead(approved)
  return { status, headers: rawHeaders, body: approved.body }
}

const voter = ({ caller, requestId }: ManagementCall) => ({ reviewer: caller.agent, requestId })

/** Who decides, and what that person saw. */
export function verdict(call: ManagementCall): Verdict {
  const digests = ifMatch(call)
  return { ...voter(call), ...(digests === undefined ? {} : { digests }) }
}
