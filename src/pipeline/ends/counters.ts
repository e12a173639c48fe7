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
import type { EndListener, EndParts } from './listener.ts'

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
