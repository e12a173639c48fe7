/** Spans of proxied requests, made at their end of what the canonical line is made of. */
import { redactPath } from '../../base/redact.ts'
import { refusalKinds } from '../../base/refusal-kinds.ts'
import { knownMethod, namedMethod, type SpanAttributes } from '../../telemetry/tracing/span.ts'
import type { RequestTrace, Tracing } from '../../telemetry/tracing/tracing.ts'
import type { Exchange } from '../exchange.ts'
import { genAiAttributes, usageAttributes } from './gen-ai.ts'
import type { EndListener } from './listener.ts'

export function spanListener(tracing: Tracing): EndListener {
  const { Keep } = tracing.settings
  const keeps = { held: Keep.includes('held'), refused: Keep.includes('refused'), failed: Keep.includes('failed') }
  const isWanted = (exchange: Exchange): boolean =>
    (keeps.held && exchange.hitlId !== undefined) ||
    (keeps.refused && isRefused(exchange)) ||
    (keeps.failed && hasFailed(exchange))
  return {
    name: 'spans',
    ended(exchange, at) {
      // Requests of nobody are kept for no reason: anybody could make as many as they like.
      const isKept = exchange.agent !== undefined && isWanted(exchange)
      const trace = isKept ? tracing.keep(exchange) : tracing.of(exchange)
      if (trace?.isKept) takeSpans(exchange, trace, { tracing, at })
    },
  }
}

const isRefused = ({ ending, refusal }: Exchange): boolean =>
  ending === 'refused' && refusal !== undefined && refusalKinds[refusal].status !== 429

const hasFailed = ({ ending, failure, upstreamStatus = 0 }: Exchange): boolean =>
  ending === 'broken' || failure !== undefined || upstreamStatus >= 500

interface SpanEnd {
  readonly tracing: Tracing
  /** Steady milliseconds. */
  readonly at: number
}

/** Attributes are read now: a span that waits must not keep the exchange, whose body may be large. */
function takeSpans(exchange: Exchange, trace: RequestTrace, { tracing, at }: SpanEnd): void {
  const { traceId, spanId, parentId } = trace
  const { method, review, sentAt } = exchange
  const agentId = exchange.agent?.id ?? ''
  const epoch = tracing.epoch()
  const status = exchange.status
  tracing.sink.take({
    traceId,
    spanId,
    parentId,
    hasRemoteParent: true,
    kind: 'server',
    name: exchange.names?.mcp?.method ?? `${namedMethod(method)} /proxy`,
    startedAt: epoch + exchange.startedAt,
    endedAt: epoch + at,
    attributes: serverAttributes(exchange, status),
    isError: status >= 500 || status === 0 || exchange.ending === 'broken',
    agentId,
  })
  // A request that waited has no attempt of its own: the id of one is free.
  if (review !== undefined) {
    tracing.sink.take({
      ...{ traceId, spanId: trace.clientId, parentId: spanId, agentId, kind: 'internal', name: 'review' },
      ...{ startedAt: epoch + review.from, endedAt: epoch + review.to },
      ...{ attributes: { 'agent_gateway.hitl.id': exchange.hitlId }, isError: false },
    })
  }
  // What waited for a verdict is sent under the call of its reviewer.
  if (sentAt === undefined || exchange.hitlId !== undefined) return
  const { earlier } = trace
  for (let count = 0; count <= earlier.length; count++) {
    const attempt = earlier[count]
    const answered = attempt === undefined ? exchange.upstreamStatus : undefined
    tracing.sink.take({
      traceId,
      spanId: attempt?.spanId ?? trace.clientId,
      parentId: spanId,
      kind: 'client',
      name: exchange.names?.mcp?.method ?? namedMethod(method),
      startedAt: epoch + (attempt?.from ?? earlier.at(-1)?.to ?? sentAt),
      endedAt: epoch + (attempt?.to ?? at),
      attributes: {
        ...targetAttributes(exchange),
        'http.response.status_code': answered,
        'http.request.resend_count': count === 0 ? undefined : count,
        'error.type': attempt === undefined ? exchange.failure : 'reset',
        ...genAiAttributes(exchange),
        ...usageAttributes(exchange),
      },
      isError: answered === undefined || answered >= 400 || exchange.ending === 'broken',
      agentId,
    })
  }
}

/** Never a query, a header field, a body or an argument of a tool. */
function targetAttributes({ method, target }: Exchange): SpanAttributes {
  return {
    'http.request.method': knownMethod(method),
    'server.address': target?.origin.host,
    'server.port': target?.origin.port,
    'url.scheme': target?.origin.scheme,
  }
}

function serverAttributes(exchange: Exchange, status: number): SpanAttributes {
  const { requestId, decision, hitlId, grantId, target, addressing } = exchange
  return {
    ...targetAttributes(exchange),
    'http.route': '/proxy',
    'http.response.status_code': status === 0 ? undefined : status,
    'url.path': target === undefined || addressing.road === 'tunnel' ? undefined : redactPath(target.path),
    'error.type': exchange.refusal ?? exchange.failure,
    'agent_gateway.request.id': requestId,
    'agent_gateway.decision': decision?.decision,
    'agent_gateway.policy': decision?.policy ?? undefined,
    'agent_gateway.rule': decision?.rule ?? undefined,
    'agent_gateway.risk': decision?.risk?.score,
    'agent_gateway.hitl.id': hitlId,
    'agent_gateway.grant.id': grantId,
    'agent_gateway.outcome': exchange.outcome,
    ...genAiAttributes(exchange),
  }
}
