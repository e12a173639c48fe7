import {
  answers,
  decisions,
  duration,
  overhead,
  refusedTunnels,
  requestBytes,
  requests,
  responseBytes,
} from '../../telemetry/layout.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { EndListener } from './listener.ts'

export const metricsListener = (metrics: Metrics): EndListener => ({
  name: 'metrics',
  ended(exchange, at) {
    const { decision, upstreamStatus, startedAt, sentAt } = exchange
    metrics.count(requests, exchange.outcome)
    if (exchange.addressing.road === 'tunnel') metrics.count(refusedTunnels, exchange.outcome)
    metrics.observe(duration, (at - startedAt) / 1e3)
    if (decision !== undefined) metrics.count(decisions, decision.decision)
    if (sentAt === undefined) return
    metrics.observe(overhead, (sentAt - startedAt) / 1e3)
    metrics.add(requestBytes, exchange.body?.length ?? exchange.bytesUp)
    metrics.add(responseBytes, exchange.bytesDown)
    if (upstreamStatus !== undefined) metrics.count(answers, classOf(upstreamStatus))
  },
})

const statusClasses: readonly string[] = ['', '', '2xx', '3xx', '4xx', '5xx']

/** A status that has no class is read as a fault of the server (RFC 9110 section 15). */
const classOf = (status: number): string => statusClasses[Math.min(Math.floor(status / 100), 5)] ?? ''
