import { isRefusal, type Refusal, refuse } from '../errors.ts'
import type { Approval, Approved } from '../hitl/model.ts'
import type { DetailView } from '../hitl/view.ts'
import { inertHead } from '../http/inert.ts'
import { preferenceApplied, preferredWait } from '../http/prefer.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import type { HitlFilter } from '../storage/store.ts'
import { bodyOf, type Call, done, type Handlers, textsOf } from './call.ts'
import { listReply } from './list.ts'
import type { ManagementParts } from './parts.ts'

const noAnswer =
  'No answer is kept under this id. GET /hitl/status/{id} tells what became of a request and whether it has one.'

/** Operations of spec 4.5. */
export function hitlHandlers({ hitl: { queue } }: ManagementParts): Handlers['guarded'] {
  /** The status read; with `Prefer: wait` it is answered when the outcome is known. */
  const readAs = (member: 'request' | 'pending') => async (call: Call) => {
    const seconds = preferredWait(call.req.rawHeaders)
    const { named: id, caller } = call
    const { agent } = caller
    const read: DetailView | undefined =
      seconds === 0
        ? await queue.get(id, agent)
        : await queue.waitForVerdict(id, agent, { ms: seconds * 1_000, signal: call.left })
    const problem = call.problemNow()
    if (problem !== undefined) return problem
    if (read === undefined) return refuse('not_found')
    return jsonReply(200, { id: read.id, status: read.status, [member]: read }, preferenceApplied(seconds))
  }
  return {
    listPendingRequests: call => listReply(queue.pending(filterOf(call))),
    getHitlStatus: readAs('request'),
    getHitlRequest: readAs('pending'),
    async getHitlResponse(call) {
      const answer = await queue.answer(call.named, call.caller.agent)
      if (answer === undefined) return refuse('not_found', noAnswer)
      const { status, rawHeaders } = inertHead(answer)
      // The length is that of the stored body: the answer to HEAD names another.
      const fields = rawHeaders.filter((_, index) => !isContentLength(rawHeaders[index - (index % 2)]!))
      return { status, headers: [...fields, 'Gateway-Hitl-Id', call.named], body: Buffer.from(answer.body) }
    },
    async approveRequest(call) {
      const { comment, resend, grant } = bodyOf<Partial<Approval> | undefined>(call) ?? {}
      const approved = await queue.approve(call.named, { ...verdict(call), comment, resend, grant })
      return isRefusal(approved) ? approved : approvedReply(approved)
    },
    async withdrawRequest(call): Promise<Reply | Refusal> {
      const { caller, requestId } = call
      const gone = await queue.withdraw(call.named, { agentId: caller.agent.id, requestId, cause: 'asked' })
      return isRefusal(gone) ? gone : done
    },
    async denyRequest(call): Promise<Reply | Refusal> {
      const { comment } = bodyOf<Partial<Approval> | undefined>(call) ?? {}
      const denied = await queue.deny(call.named, { ...verdict(call), comment })
      return isRefusal(denied) ? denied : done
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

const isContentLength = (name: string) => name.toLowerCase() === 'content-length'

function filterOf(call: Call): HitlFilter {
  const { agentId, host, rule } = textsOf(call)
  return {
    ...(agentId !== undefined && { agentId: agentId.toLowerCase() }),
    ...(host !== undefined && { host }),
    ...(rule !== undefined && { rule }),
  }
}

function verdict(call: Call) {
  return { reviewer: call.caller.agent, requestId: call.requestId }
}
