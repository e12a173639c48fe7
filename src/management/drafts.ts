import { mark } from '../base/redact.ts'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import type { DraftOrder } from '../policies/draft.ts'
import { bodyOf, type Handlers, type ManagementCall } from './call.ts'
import type { ManagementParts } from './parts.ts'
import { subjectOf } from './policy-changes.ts'
import { invalid } from './proposals.ts'

/** As openapi.json describes it. */
interface DraftBody extends Partial<Pick<DraftOrder, 'effect' | 'name' | 'priority' | 'open'>> {
  readonly hitlId?: string
  readonly agentId?: string
  readonly request?: DraftOrder['request']
}

interface DraftSource {
  readonly agentId: string
  readonly request: DraftOrder['request']
  /** Header fields of which the value was not shown. */
  readonly redacted: readonly string[]
}

/** A rule, and a test, from one request. Nothing is put in force. */
export function draftHandlers(parts: ManagementParts): Handlers['guarded'] {
  const { registry, policyWork, language } = parts
  return {
    async draftRule(call) {
      const { effect = 'Allow', name = 'drafted', priority = 0, open = [], ...from } = bodyOf<DraftBody>(call)
      const alone = !call.caller.agent.roles.some(role => role === 'admin' || role === 'auditor')
      if (alone && from.hitlId === undefined)
        return refuse('forbidden', 'A reviewer gives hitlId: only an auditor or admin may give agentId and request.')
      const source = await sourceOf(call, from, parts)
      if (isRefusal(source)) return source
      const agent = registry.get(source.agentId)
      if (agent === undefined) return invalid('agentId', 'must be the id of an agent')
      const { incompleteSince: _, ...subject } = await subjectOf(agent, 0, parts)
      const order = { request: source.request, effect, name, priority, open, alone }
      const made = await policyWork.run(thread => thread.call('draft', [order, subject, language]))
      return isRefusal(made) ? made : jsonReply(200, { ...made, redacted: [...source.redacted, ...made.redacted] })
    },
  }
}

async function sourceOf(
  { caller }: ManagementCall,
  { hitlId, agentId, request }: Pick<DraftBody, 'hitlId' | 'agentId' | 'request'>,
  { hitl }: Pick<ManagementParts, 'hitl'>,
): Promise<DraftSource | Refusal> {
  if (hitlId === undefined) {
    if (agentId === undefined || request === undefined) return invalid('hitlId', 'or agentId and request must be given')
    return { agentId, request, redacted: [] }
  }
  const item = await hitl.queue.get(hitlId, caller.agent, { exact: true })
  if (item === undefined) return refuse('not_found')
  const { method, url, headers } = item
  if (url.includes(mark)) return invalid('hitlId', 'must be a request without a secret in its URL')
  const shown = Object.entries(headers).filter(([, value]) => !value.includes(mark))
  const redacted = Object.keys(headers).filter(name => !shown.some(([other]) => other === name))
  const body = Buffer.from(item.body, 'base64').toString()
  const made = { method, url, headers: Object.fromEntries(shown), ...(item.body === '' ? {} : { body }) }
  return { agentId: item.agentId, request: made, redacted }
}
