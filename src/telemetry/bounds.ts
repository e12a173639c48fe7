import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { BoundName } from './layout.ts'
import { bounds } from './layout.ts'
import type { Metrics } from './metrics.ts'

export interface BoundsParts {
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
  /** Undefined when nothing is counted. */
  readonly metrics: Metrics | undefined
}

/** Tells the operator which limits are reached, and by which agent. */
export interface Bounds {
  /**
   * Counts a limit that was reached. The first time a minute for each limit and agent, a log line names both.
   *
   * @param agentId undefined when no agent is known
   */
  reached(bound: BoundName, agentId?: string, requestId?: string): void
}

/** One line for each limit and agent in this time, milliseconds. */
const quietMs = 60_000
/** Pairs of limit and agent that are remembered; more than that many in a minute are counted and not logged. */
const mostPairs = 1_000

export function createBounds({ clock, log, metrics }: BoundsParts): Bounds {
  let logged = new Set<string>()
  let since = Number.NEGATIVE_INFINITY
  return {
    reached(bound, agentId, requestId) {
      metrics?.count(bounds, bound)
      const now = clock.steady()
      if (now - since >= quietMs) {
        logged = new Set()
        since = now
      }
      const pair = `${bound} ${agentId ?? ''}`
      if (logged.size >= mostPairs || logged.has(pair)) return
      logged.add(pair)
      log.warn({ bound, agentId, requestId }, 'a limit was reached')
    },
  }
}
