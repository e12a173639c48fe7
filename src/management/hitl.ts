import type { Refusal } from '../errors.ts'
import { isRefusal, refuse } from '../errors.ts'
import type { Approval, Approved } from '../hitl/model.ts'
import type { Queue } from '../hitl/queue.ts'
import type { Reply } from '../http/respond.ts'
import { jsonReply } from '../http/respond.ts'
import type { Call, Handlers } from './call.ts'
import { done } from './call.ts'

/** Fields of an upstream's answer that the gateway sets itself towards a reviewer. */
const replaced = new Set(['cache-control', 'content-security-policy', 'x-content-type-options', 'gateway-error'])

/** The upstream's page must not run as one of the gateway's (spec 4.5; a reviewer may open it in a browser). */
const inert = ['Cache-Control', 'no-store', 'Content-Security-Policy', 'sandbox', 'X-Content-Type-Options', 'nosniff']

/** Operations of spec 4.5. */
export function hitlHandlers(queue: Queue): Handlers['guarded'] {
  const read = (call: Call) => queue.get(hitlId(call), call.caller.agent)
  return {
    listPendingRequests: async call => jsonReply(200, await queue.pending(call.caller.agent)),
    async getHitlStatus(call) {
      const request = await read(call)
      if (request === undefined) return refuse('not_found')
      return jsonReply(200, { id: request.id, status: request.status, request })
    },
    async getHitlRequest(call) {
      const pending = await read(call)
      if (pending === undefined) return refuse('not_found')
      return jsonReply(200, { id: pending.id, status: pending.status, pending })
    },
    async approveRequest(call) {
      const { comment, resend } = (call.body ?? {}) as Pick<Approval, 'comment' | 'resend'>
      const approved = await queue.approve(hitlId(call), { ...verdict(call), comment, resend })
      return isRefusal(approved) ? approved : approvedReply(approved)
    },
    async denyRequest(call): Promise<Reply | Refusal> {
      const { comment } = (call.body ?? {}) as Pick<Approval, 'comment'>
      const denied = await queue.deny(hitlId(call), { ...verdict(call), comment })
      return isRefusal(denied) ? denied : done
    },
  }
}

function approvedReply(approved: Approved): Reply {
  if (approved.kind === 'waiting') {
    const { id, status, approvedBy, approvalsNeeded } = approved.item
    return jsonReply(202, { id, status, approvals: approvedBy.length, approvalsNeeded })
  }
  const headers: string[] = [...inert]
  for (let index = 0; index < approved.rawHeaders.length; index += 2) {
    const name = approved.rawHeaders[index]!
    if (!replaced.has(name.toLowerCase())) headers.push(name, approved.rawHeaders[index + 1]!)
  }
  return { status: approved.status, headers, body: approved.body }
}

function verdict(call: Call) {
  return { reviewer: call.caller.agent, requestId: call.requestId }
}

function hitlId(call: Call): string {
  return call.params['id']!
}
