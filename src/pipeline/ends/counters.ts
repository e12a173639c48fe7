/** Listeners that count: what an agent did, which rules decided, and the metrics. */
import { redactPath } from '../../base/redact.ts'
import type { RiskSignal } from '../../policy/request/facts.ts'
import {
  answers,
  decisionDuration,
  decisions,
  duration,
  effectLabels,
  overhead,
  type RequestKind,
  refusedTunnels,
  requestBytes,
  requests,
  responseBytes,
} from '../../telemetry/layout.ts'
import { classOf } from '../../telemetry/metrics.ts'
import type { Exchange } from '../exchange.ts'
import type { EndListener, EndParts, TrustEvent } from './listener.ts'

/** Clients of MCP send requests that `mcp_post_only` refuses by themselves: the agent cannot avoid them. */
const isDenied = ({ effect, refusal }: Exchange): boolean => effect === 'Deny' && refusal !== 'mcp_post_only'

export const activityListener = ({ activity, clock }: EndParts): EndListener => ({
  name: 'activity',
  ended(exchange) {
    const { agent, target, upstreamStatus, hitlId } = exchange
    if (agent === undefined) return
    const now = clock.now()
    activity.request(agent.id, now)
    if (isDenied(exchange)) activity.denied(agent.id, now)
    if (hitlId !== undefined) activity.held(agent.id, now)
    if (upstreamStatus === undefined || target === undefined) return
    const bytes = exchange.body?.length ?? exchange.bytesUp
    activity.sent(agent.id, { host: target.origin.host, bytes }, now)
  },
})

/** The rule that decided, and those in shadow that would have decided otherwise. */
export const decisionListener = ({ hits, shadows }: EndParts): EndListener => ({
  name: 'decisions',
  ended({ agent, decision }) {
    if (agent === undefined || decision === undefined) return
    const { policy, rule, source, shadow } = decision
    if (policy !== null && (rule !== null || source === 'default')) hits.note(policy, rule)
    for (const { policy: other, rule: inShadow, would } of shadow)
      shadows.note(other ?? agent.policyName ?? '', inShadow, would)
  },
})

/** Only refusals and suspensions are noted: an allowed request pays nothing for it. */
export const incidentListener = ({ incidents, clock }: EndParts): EndListener => ({
  name: 'incidents',
  ended(exchange) {
    const { agent, ending, requestId, req, target, decision, hitlId } = exchange
    if (agent === undefined || (ending !== 'refused' && ending !== 'suspended')) return
    incidents.note({
      at: clock.now(),
      agentId: agent.id,
      requestId,
      method: req.method ?? '',
      origin: target?.origin.key ?? '',
      path: target === undefined ? '' : redactPath(target.path),
      outcome: exchange.outcome,
      denied: isDenied(exchange),
      policy: decision?.policy ?? null,
      rule: decision?.rule ?? null,
      hitlId: hitlId ?? null,
    })
  },
})

export const trustListener = ({ agents }: EndParts): EndListener => ({
  name: 'trust',
  ended(exchange) {
    const { agent, requestId } = exchange
    if (agent !== undefined) for (const event of trustEvents(exchange)) agents.recordTrust(agent.id, event, requestId)
  },
})

const noSignals: readonly RiskSignal[] = []
const nothing: readonly TrustEvent[] = []
const succeeded: readonly TrustEvent[] = ['success']

function trustEvents(exchange: Exchange): readonly TrustEvent[] {
  const { decision, upstreamStatus = 0 } = exchange
  const good = exchange.ending === 'forwarded' && upstreamStatus >= 200 && upstreamStatus < 300
  const signals = decision?.risk?.signals ?? noSignals
  const denied = isDenied(exchange)
  if (!denied && signals.length === 0) return good ? succeeded : nothing
  const events: TrustEvent[] = good ? ['success'] : []
  if (denied) events.unshift('policyDenial')
  if (signals.some(({ signal }) => signal === 'secret-in-body')) events.unshift('secretDetected')
  return events
}

export const metricsListener = ({ metrics, clock }: Pick<EndParts, 'metrics' | 'clock'>): EndListener => ({
  name: 'metrics',
  ended(exchange, at) {
    const { decision, upstreamStatus, startedAt, sentAt, target, trace } = exchange
    const kind = kindOf(exchange)
    const traceId = trace?.isKept ? trace.traceId : undefined
    const seconds = (at - startedAt) / 1e3
    metrics.count(requests, exchange.outcome)
    if (kind === 'tunnel') metrics.count(refusedTunnels, exchange.outcome)
    metrics.observe(duration, seconds, kind)
    if (traceId !== undefined) metrics.exemplify(duration, { traceId, value: seconds, at: clock.now() }, kind)
    if (decision !== undefined) {
      metrics.count(decisions, effectLabels[decision.decision])
      metrics.observe(decisionDuration, exchange.decisionNs / 1e9)
    }
    if (sentAt === undefined) return
    if (kind !== 'held') {
      const value = (sentAt - startedAt - exchange.bodyMs) / 1e3
      metrics.observe(overhead, value)
      if (traceId !== undefined) metrics.exemplify(overhead, { traceId, value, at: clock.now() })
    }
    metrics.add(requestBytes, exchange.body?.length ?? exchange.bytesUp)
    metrics.add(responseBytes, exchange.bytesDown)
    if (upstreamStatus !== undefined) metrics.countOf(target?.origin.host ?? '', answers, classOf(upstreamStatus))
  },
})

function kindOf(exchange: Exchange): RequestKind {
  if (exchange.hitlId !== undefined) return 'held'
  if (exchange.addressing.road === 'tunnel') return 'tunnel'
  if (exchange.upstreamStatus === 101) return 'websocket'
  return exchange.isEventStream ? 'stream' : 'plain'
}
