import type { TrailVerification } from '../audit/verification.ts'
import type { AcceptCounts } from '../http/accept.ts'
import type { SharedMemory } from '../limits/shared-memory.ts'
import { watchEventLoop } from '../telemetry/event-loop.ts'
import { exposition, type MetricSample } from '../telemetry/exposition.ts'
import { clientConnections, openTunnels, requests, upstreamConnections, webSockets } from '../telemetry/layout.ts'
import { createMetrics, type Metrics, readTotals, type Totals } from '../telemetry/metrics.ts'
import { createProcessReadings } from '../telemetry/process.ts'
import type { Base } from './base.ts'
import type { SharedLimits } from './shared.ts'

export interface TelemetryParts extends Pick<Base, 'clock' | 'logStatus' | 'store' | 'fleet'> {
  readonly limits: SharedLimits
  readonly memory: Pick<SharedMemory, 'metrics'>
  readonly verification: Pick<TrailVerification, 'state'>
}

/** The counters of one thread. */
export interface Counters {
  readonly metrics: Metrics
  readonly acceptCounts: AcceptCounts
  /** Updates the gauges. Call about every second. */
  sample(): void
  close(): void
}

/** The counters of this thread and of all threads. */
export interface Telemetry extends Counters {
  totals(): Totals
  /** Everything, as text for a scraper. */
  page(): Promise<string>
}

export function createTelemetry(parts: TelemetryParts): Telemetry {
  const processReadings = createProcessReadings(parts.clock)
  const started = parts.clock.now()
  return {
    ...createCounters(parts.memory, 0),
    totals: () => readTotals(parts.memory.metrics),
    async page() {
      const readings = await gatewayReadings(parts, started)
      return exposition(readTotals(parts.memory.metrics), [...readings, ...processReadings()])
    },
  }
}

/** The counters of one thread. Connections of a thread that died are gone. */
export function createCounters(memory: Pick<SharedMemory, 'metrics'>, thread: number): Counters {
  const metrics = createMetrics(memory.metrics, thread)
  for (const gauge of [clientConnections, upstreamConnections, webSockets, openTunnels]) metrics.clear(gauge)
  const loop = watchEventLoop(metrics)
  return {
    metrics,
    acceptCounts: {
      connection: change => metrics.add(clientConnections, change),
      refused: code => metrics.count(requests, code),
    },
    sample: () => loop.sample(),
    close: () => loop.close(),
  }
}

async function gatewayReadings(parts: TelemetryParts, started: number): Promise<readonly MetricSample[]> {
  const { limits, store, clock, logStatus, fleet, verification } = parts
  const gauge = (name: string, help: string, value: number): MetricSample[] => [
    { name: `agent_gateway_${name}`, help, type: 'gauge', value },
  ]
  // A store that does not answer must not hide the other metrics.
  const pending = await store.hitl.countPending(clock.now()).catch(() => undefined)
  const { dropped, problem } = logStatus()
  const { status, verifiedAt } = verification.state()
  const broken = status === 'broken'
  const age = Math.max(0, Math.round((clock.now() - (verifiedAt ?? started)) / 1_000))
  return [
    {
      name: 'agent_gateway_log_lines_dropped_total',
      help: 'Log lines that could not be written.',
      type: 'counter',
      value: dropped,
    },
    ...gauge('log_failing', '1 while log lines cannot be written.', problem === undefined ? 0 : 1),
    ...gauge('held_body_bytes', 'Bytes of bodies that are held to decide on.', limits.heldBytes.inAll()),
    ...gauge('requests_in_flight', 'Proxied requests under way.', limits.inFlightInAll()),
    ...gauge(
      'circuits_open',
      'Open circuits, each of one agent or of all to one upstream.',
      limits.breaker.openAt(clock.steady()),
    ),
    ...gauge('audit_broken', '1 while the audit trail is not as it was written.', broken ? 1 : 0),
    ...gauge('audit_verified_age_seconds', 'Time since the end of the audit trail was reached.', age),
    ...fleet.readings(),
    ...(pending === undefined ? [] : gauge('hitl_pending', 'Requests that wait for a reviewer.', pending)),
  ]
}
