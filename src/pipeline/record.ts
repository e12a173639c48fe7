import { redactText } from '../base/redact.ts'
import type { Clock } from '../clock.ts'
import { refusalKinds } from '../errors.ts'
import type { ActivityLog } from '../limits/activity.ts'
import type { HitTally } from '../limits/hit-tally.ts'
import type { Incidents } from '../limits/incidents.ts'
import type { ShadowTally } from '../limits/shadow-tally.ts'
import type { Log, LogFields } from '../log.ts'
import type { Decision, MatchedCondition, ShadowOutcome } from '../policy/evaluation/decision.ts'
import type { RiskSignal } from '../policy/request/facts.ts'
import { answers, decisions, duration, overhead, requestBytes, requests, responseBytes } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { keyIdOf } from '../tokens/agent-key.ts'
import type { ClientIp } from './client-ip.ts'
import type { Exchange } from './exchange.ts'

/** Causes that change the trust of an agent. */
export type TrustEvent = 'success' | 'policyDenial' | 'secretDetected'

export interface RecorderParts {
  readonly log: Pick<Log, 'line'>
  readonly clock: Clock
  /** Logging:Access. */
  readonly access: boolean
  /** Logging:Values. */
  readonly values: boolean
  readonly clientIpOf: ClientIp
  readonly activity: ActivityLog
  readonly hits: Pick<HitTally, 'note'>
  readonly shadows: ShadowTally
  readonly incidents: Pick<Incidents, 'note'>
  /** Undefined when nothing is counted. */
  readonly metrics: Metrics | undefined
  readonly onTrust: (agentId: string, event: TrustEvent, requestId: string) => void
}

export interface Recorder {
  /** An exchange is over: notes the agent's activity and trust, the counters, and the canonical log line. */
  over(exchange: Exchange): void
  /** A WebSocket is open: its canonical line comes at its end, which can be hours away. */
  opened(exchange: Exchange): void
}

export function createRecorder(parts: RecorderParts): Recorder {
  return {
    over(exchange) {
      const { agent } = exchange
      if (agent !== undefined) {
        noteActivity(exchange, agent.id, parts)
        if (exchange.decision !== undefined) noteDecision(exchange.decision, agent.policyName ?? '', parts)
        if (exchange.ending === 'refused' || exchange.ending === 'suspended') noteIncident(exchange, agent.id, parts)
        for (const event of trustEvents(exchange)) parts.onTrust(agent.id, event, exchange.requestId)
      }
      const ms = parts.clock.steady() - exchange.startedAt
      if (parts.metrics !== undefined) countExchange(exchange, parts.metrics, ms)
      if (parts.access) writeLine(exchange, ms, parts)
    },
    opened(exchange) {
      if (parts.access)
        parts.log.line(callMembers(exchange, parts) + decidedMembers(exchange, parts), 'websocket opened')
    },
  }
}

function noteActivity(exchange: Exchange, agentId: string, { activity, clock }: RecorderParts): void {
  const now = clock.now()
  activity.request(agentId, now)
  if (isDenied(exchange)) activity.denied(agentId, now)
  if (exchange.hitlId !== undefined) activity.held(agentId, now)
  if (exchange.upstreamStatus === undefined || exchange.target === undefined) return
  const bytes = exchange.body?.length ?? exchange.bytesUp
  activity.sent(agentId, { host: exchange.target.origin.host, bytes }, now)
}

/** Clients of MCP send by themselves what `mcp_post_only` refuses: the agent cannot avoid it. */
const isDenied = ({ effect, refusal }: Exchange): boolean => effect === 'Deny' && refusal !== 'mcp_post_only'

/** Only refusals and suspensions are noted: an allowed request pays nothing for it. */
function noteIncident(exchange: Exchange, agentId: string, { incidents, clock }: RecorderParts): void {
  const { requestId, req, target, decision } = exchange
  incidents.note({
    at: clock.now(),
    agentId,
    requestId,
    method: req.method ?? '',
    origin: target?.origin.key ?? '',
    path: target === undefined ? '' : pathOf(target.path),
    outcome: outcomeOf(exchange),
    denied: isDenied(exchange),
    policy: decision?.policy ?? null,
    rule: decision?.rule ?? null,
    hitlId: exchange.hitlId ?? null,
  })
}

function countExchange(exchange: Exchange, metrics: Metrics, ms: number): void {
  const { decision, upstreamStatus, startedAt, sentAt } = exchange
  metrics.count(requests, outcomeOf(exchange))
  metrics.observe(duration, ms / 1e3)
  if (decision !== undefined) metrics.count(decisions, decision.decision)
  if (sentAt === undefined) return
  metrics.observe(overhead, (sentAt - startedAt) / 1e3)
  metrics.add(requestBytes, exchange.body?.length ?? exchange.bytesUp)
  metrics.add(responseBytes, exchange.bytesDown)
  if (upstreamStatus !== undefined) metrics.count(answers, classOf(upstreamStatus))
}

/** A refusal by its code; what the gateway answered for itself without refusing anything is `answered`. */
function outcomeOf({ ending, refusal }: Exchange): string {
  return ending === 'refused' ? (refusal ?? 'answered') : (ending ?? 'aborted')
}

const statusClasses: readonly string[] = ['', '', '2xx', '3xx', '4xx', '5xx']

/** A status that has no class is read as a fault of the server (RFC 9110 section 15). */
const classOf = (status: number): string => statusClasses[Math.min(Math.floor(status / 100), 5)] ?? ''

/** The rule that decided, and those in shadow that would have decided otherwise. */
function noteDecision(decision: Decision, ofAgent: string, { hits, shadows }: RecorderParts): void {
  const { policy, rule, source } = decision
  if (policy !== null && (rule !== null || source === 'default')) hits.note(policy, rule)
  for (const { policy: other, rule: inShadow, would } of decision.shadow)
    shadows.note(other ?? ofAgent, inShadow, would)
}

const noSignals: readonly RiskSignal[] = []
const nothing: readonly TrustEvent[] = []
const succeeded: readonly TrustEvent[] = ['success']

function trustEvents(exchange: Exchange): readonly TrustEvent[] {
  const { decision, upstreamStatus = 0 } = exchange
  const denied = isDenied(exchange)
  const good = exchange.ending === 'forwarded' && upstreamStatus >= 200 && upstreamStatus < 300
  const signals = decision?.risk?.signals ?? noSignals
  if (!denied && signals.length === 0) return good ? succeeded : nothing
  const events: TrustEvent[] = good ? ['success'] : []
  if (denied) events.unshift('policyDenial')
  if (signals.some(({ signal }) => signal === 'secret-in-body')) events.unshift('secretDetected')
  return events
}

/** One line tells the whole exchange. */
function writeLine(exchange: Exchange, ms: number, parts: RecorderParts): void {
  const line =
    callMembers(exchange, parts) +
    failureMembers(exchange) +
    decidedMembers(exchange, parts) +
    plain('ending', exchange.ending ?? 'aborted') +
    number('ms', Math.round(ms * 100) / 100) +
    number('bytesIn', exchange.body?.length ?? exchange.bytesUp) +
    number('bytesOut', exchange.bytesDown)
  parts.log.line(line, 'exchange')
}

/** Who called what. Queries are left out: they carry secrets too often. */
function callMembers(exchange: Exchange, { clientIpOf }: RecorderParts): string {
  const { requestId, agent, req, target } = exchange
  return (
    `"requestId":"${requestId}"${plain('agentId', agent?.id)}${plain('keyId', keyIdOf(exchange.claims))}` +
    plain('clientIp', clientIpOf(exchange.socket, req.rawHeaders)) +
    plain('method', req.method) +
    (target === undefined ? '' : plain('origin', target.origin.key) + text('path', pathOf(target.path))) +
    number('status', statusOf(exchange))
  )
}

function decidedMembers(exchange: Exchange, { values }: RecorderParts): string {
  const { hitlId, grantId } = exchange
  return decisionMembers(exchange, values) + plain('hitlId', hitlId) + plain('grantId', grantId)
}

function failureMembers({ refusal, cause, failure, sentAgain }: Exchange): string {
  const again = sentAgain ? ',"sentAgain":true' : ''
  return plain('refusal', refusal) + text('cause', cause) + plain('failure', failure) + again
}

function decisionMembers({ decision, decisionNs }: Exchange, values: boolean): string {
  if (decision === undefined) return ''
  const { source, policy, rule, evaluated, risk, shadow } = decision
  const head = plain('decision', decision.decision) + plain('source', source) + text('policy', policy)
  const withheld =
    decision.decision === 'Allow'
      ? ''
      : text('reason', decision.reason) + (values ? list('matched', decision.matched.map(matchedText)) : '')
  const score = risk === null ? '' : number('risk', risk.score) + (risk.atLeast === true ? ',"riskAtLeast":true' : '')
  const would = shadow.length === 0 ? '' : list('shadow', shadow.map(shadowText))
  const own = text('rule', rule) + number('evaluated', evaluated)
  return head + own + withheld + score + would + number('durationNs', decisionNs)
}

// Members of the line as JSON text: JSON.stringify of all of them takes twice as long.

type Name = keyof LogFields

/** Of a text that has nothing to escape. */
const plain = (name: Name, value: string | undefined) => (value === undefined ? '' : `,"${name}":"${value}"`)
const number = (name: Name, value: number) => `,"${name}":${value}`
const list = (name: Name, values: readonly string[]) => `,"${name}":${JSON.stringify(values)}`

const escaped = /[^\x20\x21\x23-\x5b\x5d-\x7e]/

function text(name: Name, value: string | null | undefined): string {
  if (value === undefined) return ''
  return `,"${name}":${value === null || escaped.test(value) ? JSON.stringify(value) : `"${value}"`}`
}

/** Status that the agent got; 0 when it got none. */
function statusOf({ res, ending, refusal, upstreamStatus }: Exchange): number {
  if (ending === 'refused' && refusal !== undefined) return refusalKinds[refusal].status
  // The head of a WebSocket goes past `res`.
  if (upstreamStatus === 101) return 101
  return res.headersSent ? res.statusCode : 0
}

/** Paths may have parameters: `;jsessionid=...`. */
export const pathOf = (path: string): string => (path.includes('=') || path.includes('%3') ? redactText(path) : path)

function matchedText({ condition, actual }: MatchedCondition): string {
  return actual === null ? condition : `${condition} (was ${JSON.stringify(actual)})`
}

function shadowText({ policy: other, rule, would }: ShadowOutcome): string {
  return `${other === undefined ? '' : `${other}/`}${rule}: ${would}`
}
