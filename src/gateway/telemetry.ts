import { parseHostPatterns } from '../base/host.ts'
import type { Config } from '../config/schema.ts'
import type { AcceptCounts } from '../http/accept.ts'
import type { ConnectionLimits } from '../http/connections.ts'
import type { SharedMemory } from '../limits/shared-memory.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Store } from '../storage/store.ts'
import { timedStore } from '../storage/timed-store.ts'
import { watchEventLoop } from '../telemetry/event-loop.ts'
import {
  clientConnections,
  openTunnels,
  requests,
  storeErrors,
  storeTime,
  upstreamConnections,
  upstreamWaiting,
  webSockets,
} from '../telemetry/layout.ts'
import { createMetrics, type Metrics, readTotals, type Totals } from '../telemetry/metrics.ts'

export interface Counters {
  readonly metrics: Metrics
  readonly acceptCounts: AcceptCounts & Pick<ConnectionLimits, 'onChange'>
  /** Updates the gauges. Call about every second. */
  sample(): void
  close(): void
}

export interface Telemetry extends Counters {
  totals(): Totals
}

export const createTelemetry = (memory: Pick<SharedMemory, 'metrics'>, config: Config): Telemetry => ({
  ...createCounters(memory, 0, config),
  totals: () => readTotals(memory.metrics),
})

/** The counters of one thread. Connections of a thread that died are gone. */
export function createCounters(
  memory: Pick<SharedMemory, 'metrics'>,
  thread: number,
  { Telemetry: { Metrics: settings } }: Config,
): Counters {
  const metrics = createMetrics(memory.metrics, thread, parseHostPatterns(settings.Origins))
  for (const gauge of [clientConnections, upstreamConnections, upstreamWaiting, webSockets, openTunnels]) {
    metrics.clear(gauge)
  }
  const loop = watchEventLoop(metrics)
  return {
    metrics,
    acceptCounts: {
      onChange: change => metrics.add(clientConnections, change),
      refused: code => metrics.count(requests, code),
    },
    sample: () => loop.sample(),
    close: () => loop.close(),
  }
}

/** The same store, whose operations are counted. */
export const countedStore = (store: Store, metrics: Metrics, clock: Clock): Store =>
  timedStore(store, clock, {
    ended: (kind, ms) => metrics.observe(storeTime, ms / 1e3, kind),
    failed: kind => metrics.count(storeErrors, kind),
  })
