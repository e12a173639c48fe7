/** Recording of the requests of agents, from which rules can be proposed: of which agents, and how much of each. */
import type { Config } from '../../config/schema.ts'
import type { Decision } from '../../policy/evaluation/decision.ts'
import type { ShapeOutcome } from '../../policy/propose/outcome.ts'
import { badSignals } from '../../policy/propose/template.ts'
import type { RiskSignal } from '../../policy/request/facts.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AgentRecord, AgentRecording } from '../../storage/agents.ts'
import type { Exchange } from '../exchange.ts'
import type { EndListener, EndParts } from './listener.ts'
import type { AlikeCalls, ShapeRecorder } from './recorder.ts'

/**
 * Records the shapes of requests that were decided. A request without body and query like an earlier one costs a look-up by
 * its URL; the others are read in turns.
 */
export const recordingListener = (parts: Pick<EndParts, 'config' | 'clock'>, recorder: ShapeRecorder): EndListener => ({
  name: 'recording',
  ended(exchange) {
    const { agent, target, decision, addressing } = exchange
    // CONNECT has no path.
    if (agent === undefined || target === undefined || decision === undefined || addressing.road === 'tunnel') return
    const mode = recordingMode(agent, parts)
    if (mode === 'off') return
    const at = parts.clock.now()
    const isPlain =
      !exchange.hasBody && target.query === undefined && !exchange.fields.mcp && target.url.length <= maxKnownUrl
    const alike = isPlain ? alikeOf(exchange, decision, target.url) : undefined
    if (alike !== undefined && recorder.count(agent.id, alike, at)) return
    const { method, rawHeaders, hasBody, body } = exchange
    const isShort = body !== undefined && body.byteLength <= parts.config.Recording.MaxBodyBytes
    recorder.note(
      {
        ...{ agent, target, method, rawHeaders, hasBody, isSampled: mode === 'samples' },
        // Its memory is used again.
        body: isShort ? Uint8Array.from(body) : undefined,
        outcome: outcomeOf(decision, classOf(exchange), exchange.grantId === undefined ? null : 'approved'),
      },
      alike,
      at,
    )
  },
  approved({ agent, target, method, rawHeaders, body, decision }, status) {
    const mode = recordingMode(agent, parts)
    if (mode === 'off') return
    const isShort = body.byteLength <= parts.config.Recording.MaxBodyBytes
    recorder.note(
      {
        ...{ agent, target, method, rawHeaders, hasBody: body.byteLength > 0, isSampled: mode === 'samples' },
        body: isShort ? body : undefined,
        outcome: outcomeOf(decision, Math.floor(status / 100), 'approved'),
      },
      undefined,
      parts.clock.now(),
    )
  },
})

const noSignals: readonly RiskSignal[] = []

/** Of a request that waits for a person the agent has no answer yet. */
const classOf = (exchange: Exchange): number => (exchange.hitlId === undefined ? Math.floor(exchange.status / 100) : 0)

/** Longer URLs are not remembered, characters. */
const maxKnownUrl = 1_024

function alikeOf(exchange: Exchange, decision: Decision, url: string): AlikeCalls | undefined {
  const { decision: effect, policy, rule, risk } = decision
  if (exchange.grantId !== undefined || (risk?.signals ?? noSignals).length > 0) return undefined
  return { url, method: exchange.method, effect, policy, rule, status: classOf(exchange) }
}

function outcomeOf(
  { decision, policy, rule, risk }: Pick<Decision, 'decision' | 'policy' | 'rule' | 'risk'>,
  status: number,
  verdict: ShapeOutcome['verdict'],
): ShapeOutcome {
  const signal = (risk?.signals ?? noSignals).find(found => badSignals.includes(found.signal))?.signal ?? null
  return { effect: decision, policy, rule, status, verdict, signal }
}

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
