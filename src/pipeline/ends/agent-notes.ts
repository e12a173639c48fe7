/** Listeners that record what an agent did, and which rules decided. */
import { redactPath } from '../../base/redact.ts'
import type { RiskSignal } from '../../policy/request/facts.ts'
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

export const trustListener = ({ onTrust }: EndParts): EndListener => ({
  name: 'trust',
  ended(exchange) {
    const { agent, requestId } = exchange
    if (agent !== undefined) for (const event of trustEvents(exchange)) onTrust(agent.id, event, requestId)
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
