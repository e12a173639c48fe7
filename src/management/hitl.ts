import { type Refusal, refuse } from '../base/refusals.ts'
import type { DetailView } from '../hitl/view.ts'
import { inertHead } from '../http/inert.ts'
import { preferenceApplied, preferredWait } from '../http/prefer.ts'
import { jsonReply, type Reply } from '../http/respond.ts'
import type { HitlFilter, HitlPastFilter } from '../storage/store.ts'
import { doneUnlessRefused, type Handlers, type ManagementCall, textsOf } from './call.ts'
import { listReply, parseCursor, placeText, readPage, someOf } from './list.ts'
import type { ManagementParts } from './parts.ts'

const noAnswer =
  'No answer is kept under this id. GET /hitl/status/{id} tells what became of a request and whether it has one.'

/** Operations of spec 4.5. */
export function hitlHandlers({ hitl: { queue } }: ManagementParts): Handlers['guarded'] {
  /** The status read; with `Prefer: wait` it is answered when the outcome is known. */
  const readAs = (member: 'request' | 'pending') => async (call: ManagementCall) => {
    const seconds = preferredWait(call.req.rawHeaders)
    const { named: id, caller } = call
    const { agent } = caller
    const form = { exact: textsOf(call)['bodyEncoding'] === 'base64' }
    const read: DetailView | undefined =
      seconds === 0
        ? await queue.get(id, agent, form)
        : await queue.waitForVerdict(id, agent, { ms: seconds * 1_000, signal: call.left, ...form })
    const problem = call.problemNow()
    if (problem !== undefined) return problem
    if (read === undefined) return refuse('not_found')
    return jsonReply(200, { id: read.id, status: read.status, [member]: read }, [
      ...preferenceApplied(seconds),
      'ETag',
      `"${read.digest}"`,
    ])
  }
  return {
    listPendingRequests: call => listReply(call, queue.pending({ ...filterOf(call), ...someOf(call) })),
    async listPastRequests(call) {
      const { status = 'all', before: cursor } = textsOf(call)
      const past = pastOf[status]
      const page = readPage(call)
      const from = parseCursor(cursor)
      const before = from && { decidedAt: from.at, id: from.id }
      const { items, totalCount, next } = await queue.history({ ...page, before }, { ...filterOf(call), ...past })
      const further = next && placeText(next.decidedAt, next.id)
      return jsonReply(200, { items, ...page, totalCount, next: further })
    },
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
    async withdrawRequest(call): Promise<Reply | Refusal> {
      const { caller, requestId } = call
      return doneUnlessRefused(
        await queue.withdraw(call.named, { agentId: caller.agent.id, requestId, cause: 'asked' }),
      )
    },
  }
}

const isContentLength = (name: string) => name.toLowerCase() === 'content-length'

function filterOf(call: ManagementCall): HitlFilter {
  const { agentId, host, rule } = textsOf(call)
  return {
    ...(agentId !== undefined && { agentId: agentId.toLowerCase() }),
    ...(host !== undefined && { host }),
    ...(rule !== undefined && { rule }),
  }
}

/** What `status` asks for. */
const pastOf: Readonly<Record<string, HitlPastFilter>> = {
  all: {},
  approved: { statuses: ['Approved'] },
  denied: { statuses: ['Denied'] },
  decided: { statuses: ['Approved', 'Denied'] },
  withdrawn: { statuses: ['Withdrawn'] },
  expired: { statuses: ['Expired'] },
  failed: { replay: 'failed' },
  unknown: { replay: 'unknown' },
}
