/** Spans of proxied requests, made at their end of what the canonical line is made of. */
import { redactPath } from '../../base/redact.ts'
import { refusalKinds } from '../../base/refusal-kinds.ts'
import { type FinishedSpan, knownMethod, namedMethod, type SpanAttributes } from '../../telemetry/tracing/span.ts'
import type { RequestTrace, Tracing } from '../../telemetry/tracing/tracing.ts'
import type { Exchange } from '../exchange.ts'
import { statusOf } from './access-line.ts'
import { genAiAttributes, usageAttributes } from './gen-ai.ts'
import type { EndListener } from './listener.ts'

export function spanListener(tracing: Tracing): EndListener {
  const reasons = tracing.settings.Keep.flatMap(kind => keeps[kind] ?? [])
  const isWanted = (exchange: Exchange): boolean => {
    for (const keeps of reasons) if (keeps(exchange)) return true
    return false
  }
  return {
    name: 'spans',
    ended(exchange, at) {
      // Requests of nobody are kept for no reason: anybody could make as many as they like.
      const isKept = exchange.agent !== undefined && isWanted(exchange)
      const trace = isKept ? tracing.keep(exchange) : tracing.of(exchange)
      if (trace?.isKept) for (const span of spansOf(exchange, trace, { tracing, at })) tracing.take(span)
    },
  }
}

const keeps: Readonly<Record<string, (exchange: Exchange) => boolean>> = {
  held: ({ hitlId }) => hitlId !== undefined,
  refused: ({ ending, refusal }) =>
    ending === 'refused' && refusal !== undefined && refusalKinds[refusal].status !== 429,
  failed: ({ ending, failure, upstreamStatus = 0 }) =>
    ending === 'broken' || failure !== undefined || upstreamStatus >= 500,
}

interface SpanEnd {
  readonly tracing: Tracing
  /** Steady milliseconds. */
  readonly at: number
}

function* spansOf(exchange: Exchange, trace: RequestTrace, { tracing, at }: SpanEnd): Generator<FinishedSpan> {
  const { traceId, spanId, parentId, clientId, earlier } = trace
  const { method, review, sentAt } = exchange
  const agentId = exchange.agent?.id ?? ''
  const time = tracing.times()
  const status = statusOf(exchange)
  yield {
    ...{ traceId, spanId, parentId, hasRemoteParent: true, agentId, ...time(exchange.startedAt, at) },
    ...{
      kind: 'server',
      name: exchange.names?.mcp?.method ?? `${namedMethod(method)} /proxy`,
      attributes: serverAttributes(exchange, status),
    },
    isError: status >= 500 || status === 0 || exchange.ending === 'broken',
  }
  const child = { traceId, parentId: spanId, agentId }
  // A request that waited has no attempt of its own: the id of one is free.
  if (review !== undefined) {
    const attributes = { 'agent_gateway.hitl.id': exchange.hitlId }
    yield {
      ...{ ...child, spanId: clientId, ...time(review.from, review.to), kind: 'internal', name: 'review' },
      ...{ attributes, isError: false },
    }
  }
  // What waited for a verdict is sent under the call of its reviewer.
  if (sentAt === undefined || exchange.hitlId !== undefined) return
  const attempts = [...earlier, { spanId: clientId, from: earlier.at(-1)?.to ?? sentAt, to: at }]
  for (const [count, attempt] of attempts.entries()) {
    const isLast = count === attempts.length - 1
    const answered = isLast ? exchange.upstreamStatus : undefined
    yield {
      ...{ ...child, spanId: attempt.spanId, ...time(attempt.from, attempt.to) },
      ...{ kind: 'client', name: exchange.names?.mcp?.method ?? namedMethod(method) },
      attributes: {
        ...targetAttributes(exchange),
        'http.response.status_code': answered,
        'http.request.resend_count': count === 0 ? undefined : count,
        'error.type': isLast ? exchange.failure : 'reset',
        ...genAiAttributes(exchange),
        ...usageAttributes(exchange),
      },
      isError: answered === undefined || answered >= 400 || exchange.ending === 'broken',
    }
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
