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
import { classOf, type Metrics } from '../../telemetry/metrics.ts'
import type { Exchange } from '../exchange.ts'
import type { EndListener } from './listener.ts'

export const metricsListener = (metrics: Metrics): EndListener => ({
  name: 'metrics',
  ended(exchange, at) {
    const { decision, upstreamStatus, startedAt, sentAt } = exchange
    const kind = kindOf(exchange)
    metrics.count(requests, exchange.outcome)
    if (kind === 'tunnel') metrics.count(refusedTunnels, exchange.outcome)
    metrics.observe(duration, (at - startedAt) / 1e3, kind)
    if (decision !== undefined) {
      metrics.count(decisions, effectLabels[decision.decision])
      metrics.observe(decisionDuration, exchange.decisionNs / 1e9)
    }
    if (sentAt === undefined) return
    if (kind !== 'held') metrics.observe(overhead, (sentAt - startedAt - exchange.bodyMs) / 1e3)
    metrics.add(requestBytes, exchange.body?.length ?? exchange.bytesUp)
    metrics.add(responseBytes, exchange.bytesDown)
    if (upstreamStatus !== undefined) metrics.count(answers, classOf(upstreamStatus))
  },
})

function kindOf(exchange: Exchange): RequestKind {
  if (exchange.hitlId !== undefined) return 'held'
  if (exchange.addressing.road === 'tunnel') return 'tunnel'
  if (exchange.upstreamStatus === 101) return 'websocket'
  return exchange.isEventStream ? 'stream' : 'plain'
}
