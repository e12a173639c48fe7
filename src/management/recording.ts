import { refuse } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import type { KeptShape } from '../policy/propose/kept.ts'
import type { ShapeOutcome } from '../policy/propose/outcome.ts'
import type { ShapeCount } from '../storage/store.ts'
import { by } from './agents.ts'
import { done, type Handlers } from './call.ts'
import { cutPage, readPage } from './list.ts'
import type { ManagementParts } from './parts.ts'

/** What was recorded of the requests of an agent. */
export function recordingHandlers({ registry, recording }: ManagementParts): Handlers['guarded'] {
  return {
    async listShapes(call) {
      const agent = registry.get(call.named)
      if (agent === undefined) return refuse('not_found')
      const { shapes, incompleteSince } = await recording.of(agent.id)
      const page = readPage(call)
      const { items, totalCount } = cutPage<ShapeCount>(shapes, page)
      const since = incompleteSince === null ? null : new Date(incompleteSince).toISOString()
      const { page: number, pageSize } = page
      return jsonReply(200, { items: items.map(shown), page: number, pageSize, totalCount, incompleteSince: since })
    },
    async deleteShapes(call) {
      const agent = registry.get(call.named)
      if (agent === undefined) return refuse('not_found')
      await recording.clear(agent.id, by(call))
      return done
    },
  }
}

function shown({ shape: text, outcome: outcomeText, values, count, firstAt, lastAt, days }: ShapeCount) {
  const shape: KeptShape = JSON.parse(text)
  const outcome: ShapeOutcome = JSON.parse(outcomeText)
  return {
    method: shape.method,
    origin: shape.origin,
    path: `/${shape.path.map(place => (typeof place === 'string' ? place : `{${place[0]}}`)).join('/')}`,
    values,
    facts: Object.fromEntries(shape.facts),
    names: Object.fromEntries(shape.names),
    unfit: shape.unfit,
    ...outcome,
    count,
    days: days.length,
    firstAt: new Date(firstAt).toISOString(),
    lastAt: new Date(lastAt).toISOString(),
  }
}
