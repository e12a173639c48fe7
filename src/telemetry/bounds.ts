import type { Log } from '../log/log.ts'
import type { Clock } from '../runtime/clock.ts'
import { type BoundName, bounds } from './layout.ts'
import type { Metrics } from './metrics.ts'
import { createOncePerMinute } from './once-per-minute.ts'

export interface BoundsParts {
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
  readonly metrics: Metrics
}

/** Tells the operator which limits were reached, and by which agent. */
export type Bounds = ReturnType<typeof createBounds>

export function createBounds({ clock, log, metrics }: BoundsParts) {
  const isFirst = createOncePerMinute(clock)
  return {
    /**
     * Counts a limit that was reached. The first time a minute for each limit and agent, a log line names both.
     *
     * @param agentId undefined when no agent is known
     * @param clientIp of a client that is not known to be an agent
     */
    reached(bound: BoundName, agentId?: string, requestId?: string, clientIp?: string) {
      metrics.count(bounds, bound)
      if (isFirst(`${bound} ${agentId ?? ''}`))
        log.warn({ limit: bound, agentId, requestId, clientIp }, 'a limit was reached')
    },
  }
}
