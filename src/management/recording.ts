import { refuse, refuseField } from '../base/refusals.ts'
import { jsonReply } from '../http/respond.ts'
import type { KeptShape } from '../policy/propose/kept.ts'
import type { ShapeOutcome } from '../policy/propose/outcome.ts'
import type { ShapeCount } from '../storage/store.ts'
import { by } from './agents.ts'
import { bodyOf, done, doneUnlessRefused, type Handlers, timeOrNull, timeText } from './call.ts'
import { cutPage, readPage } from './list.ts'
import type { ManagementParts } from './parts.ts'

/** As openapi.json describes it. */
interface RecordingOrder {
  readonly mode: 'off' | 'shapes' | 'samples' | null
  readonly until?: string
}

/** Longest time for which one agent is recorded in a way of its own, milliseconds. */
const longestMs = 7 * 86_400_000

export function recordingHandlers({ registry, recording, clock }: ManagementParts): Handlers['guarded'] {
  return {
    async assignRecording(call) {
      const { mode, until } = bodyOf<RecordingOrder>(call)
      if (registry.get(call.named) === undefined) return refuse('not_found')
      if (mode !== null && !recording.isOn)
        return refuse('wrong_state', 'Recording:Mode is off: nothing is recorded of any agent.')
      const ends = until === undefined ? Number.NaN : Date.parse(until)
      const now = clock.now()
      if (mode !== null && !(ends > now && ends <= now + longestMs))
        return refuseField('until', 'must be a time of the next 7 days')
      return doneUnlessRefused(await registry.setRecording(call.named, mode && { mode, until: ends }, by(call)))
    },
    async listShapes(call) {
      const agent = registry.get(call.named)
      if (agent === undefined) return refuse('not_found')
      const { shapes, incompleteSince } = await recording.of(agent.id)
      const samples = Map.groupBy(await recording.samplesOf(agent.id), ({ digest }) => digest)
      const page = readPage(call)
      const { items, totalCount } = cutPage<ShapeCount>(shapes, page)
      return jsonReply(200, {
        items: items.map(one => shown(one, samples.get(one.digest)?.length ?? 0)),
        ...page,
        totalCount,
        incompleteSince: timeOrNull(incompleteSince),
      })
    },
    async deleteShapes(call) {
      const agent = registry.get(call.named)
      if (agent === undefined) return refuse('not_found')
      await recording.clear(agent.id, by(call))
      return done
    },
  }
}

function shown(
  { digest: id, shape: text, outcome: outcomeText, values, fields, count, firstAt, lastAt, days }: ShapeCount,
  samples: number,
) {
  const shape: KeptShape = JSON.parse(text)
  const outcome: ShapeOutcome = JSON.parse(outcomeText)
  return {
    id,
    method: shape.method,
    origin: shape.origin,
    path: `/${shape.path.map(place => (typeof place === 'string' ? place : `{${place[0]}}`)).join('/')}`,
    values,
    fields,
    facts: Object.fromEntries(shape.facts),
    names: Object.fromEntries(shape.names),
    unfit: shape.unfit,
    ...outcome,
    count,
    samples,
    days: days.length,
    firstAt: timeText(firstAt),
    lastAt: timeText(lastAt),
  }
}
