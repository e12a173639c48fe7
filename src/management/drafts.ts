import { mark } from '../base/redact.ts'
import { isRefusal, type Refusal, refuse, refuseField } from '../base/refusals.ts'
import type { DraftOrder } from '../policies/draft.ts'
import { exampleOfKept } from '../policy/propose/example.ts'
import type { KeptShape } from '../policy/propose/kept.ts'
import { bodyOf, type Handlers, type ManagementCall, replyOf } from './call.ts'
import type { ManagementParts } from './parts.ts'
import { subjectOf } from './policy-changes.ts'

/** As openapi.json describes it. */
interface DraftBody extends Partial<Pick<DraftOrder, 'effect' | 'name' | 'priority' | 'open'>> {
  readonly hitlId?: string
  readonly agentId?: string
  readonly request?: DraftOrder['request']
  readonly shapeId?: string
}

interface DraftSource {
  readonly agentId: string
  readonly request: DraftOrder['request']
  /** Header fields of which the value was not shown. */
  readonly redacted: readonly string[]
  /** What the rule leaves open when the caller does not say. */
  readonly open: readonly string[]
}

/** A rule, and a test, from one request or one recorded shape. Nothing is put in force. */
export function draftHandlers(parts: ManagementParts): Handlers['guarded'] {
  const { registry, policyWork, language } = parts
  return {
    async draftRule(call) {
      const { effect = 'Allow', name = 'drafted', priority = 0, open, ...from } = bodyOf<DraftBody>(call)
      const alone = !call.caller.agent.roles.some(role => role === 'admin' || role === 'auditor')
      if (alone && from.hitlId === undefined)
        return refuse('forbidden', 'A reviewer gives hitlId: only an auditor or admin may give agentId.')
      const source = await sourceOf(call, from, parts)
      if (isRefusal(source)) return source
      const agent = registry.get(source.agentId)
      if (agent === undefined) return refuseField('agentId', 'must be the id of an agent')
      const { incompleteSince: _, ...subject } = await subjectOf(agent, 0, parts)
      const order = { request: source.request, effect, name, priority, open: open ?? source.open, alone }
      const made = await policyWork.run(thread => thread.call('draft', [order, subject, language]), call.left)
      return replyOf(made, ({ redacted, ...draft }) => ({ ...draft, redacted: [...source.redacted, ...redacted] }))
    },
  }
}

async function sourceOf(
  { caller }: ManagementCall,
  { hitlId, agentId, request, shapeId }: Pick<DraftBody, 'hitlId' | 'agentId' | 'request' | 'shapeId'>,
  { hitl, recording }: Pick<ManagementParts, 'hitl' | 'recording'>,
): Promise<DraftSource | Refusal> {
  if (hitlId !== undefined) return await heldSource(hitlId, caller, hitl)
  if (agentId !== undefined && request !== undefined) return { agentId, request, redacted: [], open: [] }
  if (agentId !== undefined && shapeId !== undefined) return await shapeSource(agentId, shapeId, recording)
  return refuseField('hitlId', 'or agentId with request or shapeId must be given')
}

async function heldSource(
  hitlId: string,
  caller: ManagementCall['caller'],
  hitl: ManagementParts['hitl'],
): Promise<DraftSource | Refusal> {
  const item = await hitl.queue.get(hitlId, caller.agent, { exact: true })
  if (item === undefined) return refuse('not_found')
  const { method, url, headers } = item
  if (url.includes(mark)) return refuseField('hitlId', 'must be a request without a secret in its URL')
  const shown = Object.entries(headers).filter(([, value]) => !value.includes(mark))
  const redacted = Object.keys(headers).filter(name => !shown.some(([other]) => other === name))
  const body = Buffer.from(item.body, 'base64').toString()
  const made = { method, url, headers: Object.fromEntries(shown), ...(item.body === '' ? {} : { body }) }
  return { agentId: item.agentId, request: made, redacted, open: [] }
}

/** An example of the shape: its values are made up. Ids that came with several values are open. */
async function shapeSource(
  agentId: string,
  shapeId: string,
  recording: ManagementParts['recording'],
): Promise<DraftSource | Refusal> {
  const found = (await recording.of(agentId)).shapes.find(({ digest }) => digest === shapeId)
  if (found === undefined) return refuseField('shapeId', 'must be the id of a recorded shape of the agent')
  const shape: KeptShape = JSON.parse(found.shape)
  const request = exampleOfKept(shape, found)
  if (request === undefined)
    return refuseField(
      'shapeId',
      `must be of a shape that rules can be made of, not: ${shape.unfit ?? 'ids are not known'}`,
    )
  const places = shape.path.flatMap((place, at) => (typeof place === 'string' ? [] : [`segment ${at + 1}`]))
  return { agentId, request, redacted: [], open: places.filter((_, at) => (found.values[at]?.length ?? 0) > 1) }
}
