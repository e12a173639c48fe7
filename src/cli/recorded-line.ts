import { effects } from '../policy/language/model.ts'
import { type FoundShape, shapeOf, shapeOfHead } from '../policy/propose/shape.ts'
import { type RecordedRequest, whyIneligible } from '../policy/propose/template.ts'
import { requestFromDescription } from '../policy/request/describe.ts'
import { parseLine, urlOf } from './log-lines.ts'

/** A request of a log; `ineligible` is why it teaches nothing. */
export interface RecordedLine extends RecordedRequest {
  readonly ineligible: string | undefined
}

/** A request of which no rule can be made. */
interface UnfitLine {
  readonly agentId: string
  readonly at: number
  readonly unfit: string
}

const verdicts = ['approved', 'denied'] as const

/** The request of a line; undefined when the line has none that was decided. */
export function readRecorded(text: string): RecordedLine | UnfitLine | undefined {
  const line = parseLine(text)
  const effect = effects.find(one => one === line?.decision)
  if (line === undefined || effect === undefined) return undefined
  const { request = { method: line.method ?? 'GET', url: urlOf(line) }, time, agent, status = 0 } = line
  const agentId = agent?.id ?? line.agentId ?? ''
  const at = Date.parse(time ?? '') || 0
  const described = requestFromDescription({ request, agent: { ...agent, id: agentId } }, at)
  if ('problem' in described) return { agentId, at, unfit: 'a URL that is refused' }
  const isWhole = line.request !== undefined
  const shape: FoundShape = isWhole ? shapeOf(described) : shapeOfHead(described, (line.bytesIn ?? 0) > 0)
  if ('unfit' in shape) return { agentId, at, unfit: shape.unfit }
  const verdict = verdicts.find(one => one === line.verdict) ?? null
  const signals = (line.signals ?? []).filter(signal => typeof signal === 'string')
  const recorded: RecordedRequest = { agentId, request: described, shape, at, effect, status, verdict, signals }
  return { ...recorded, ineligible: whyIneligible(recorded) }
}
