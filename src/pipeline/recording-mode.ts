import type { Config } from '../config/schema.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AgentRecord, AgentRecording } from '../storage/agents.ts'
import type { Exchange } from './exchange.ts'

/** What is needed to tell what is recorded of an agent. */
export interface RecordingTerms {
  readonly config: Pick<Config, 'Recording'>
  readonly clock: Pick<Clock, 'now'>
}

/** What is recorded of the requests of an agent now. */
export function recordingMode(
  { recording }: Pick<AgentRecord, 'recording'>,
  { config, clock }: RecordingTerms,
): AgentRecording['mode'] {
  const { Mode } = config.Recording
  if (recording === null || Mode === 'off') return Mode
  return clock.now() < recording.until ? recording.mode : Mode
}

const sampledTypes = /^(?:application\/(?:[\w.+-]+\+)?json|application\/x-www-form-urlencoded)\s*(?:;|$)/i

/** Whether the body of a request is held so that a sample of it can be made. */
export function wantsSample(
  { agent, fields, rawHeaders }: Pick<Exchange, 'fields' | 'rawHeaders'> & { readonly agent: AgentRecord },
  terms: RecordingTerms,
): boolean {
  const { contentLength } = fields
  if (contentLength <= 0 || contentLength > terms.config.Recording.MaxBodyBytes) return false
  if (recordingMode(agent, terms) !== 'samples') return false
  const at = rawHeaders.findIndex((text, place) => place % 2 === 0 && text.toLowerCase() === 'content-type')
  return at >= 0 && sampledTypes.test(rawHeaders[at + 1] ?? '')
}
