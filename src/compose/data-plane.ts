import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import type { Send } from '../hitl/model.ts'
import type { ActivityLog } from '../limits/activity.ts'
import { createActivityLog } from '../limits/activity.ts'
import type { ShadowTally } from '../limits/shadow-tally.ts'
import { createShadowTally } from '../limits/shadow-tally.ts'
import type { Log } from '../log.ts'
import type { Arrival } from '../pipeline/exchange.ts'
import type { Parts } from '../pipeline/parts.ts'
import { enforce } from '../pipeline/pipeline.ts'
import { createRecorder } from '../pipeline/record.ts'
import { createSender } from '../pipeline/replay.ts'
import { createWatch } from '../pipeline/watch.ts'
import { upstreamConnections } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Identity } from './identity.ts'
import type { Rules } from './rules.ts'
import type { SharedLimits } from './shared.ts'
import type { Upstreams } from './upstreams.ts'

export interface DataPlaneParts {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly upstreams: Upstreams
  readonly identity: Identity
  readonly rules: Rules
  readonly limits: SharedLimits
  /** Undefined when nothing is counted. */
  readonly metrics: Metrics | undefined
  readonly clientIpOf: (req: IncomingMessage) => string
  readonly report: (what: string, error: unknown) => void
}

/** What the road needs of human in the loop, which in turn needs the road to send. */
export type Reviews = Pick<Parts, 'queue' | 'grants'>

/** Everything on the road of a proxied request. */
export interface DataPlane {
  /** The road, once its reviews are there. */
  roadWith(reviews: Reviews): (arrival: Arrival) => Promise<void>
  /** What agents did lately; a reviewer's denial counts as well. */
  readonly activity: ActivityLog
  /** What rules in shadow would have decided. */
  readonly shadows: ShadowTally
  /** Sends what a person approved. */
  readonly send: Send
  /** Forgets what is idle and cuts off who stands still. Call every second or so. */
  sweep(): void
}

/** Agents whose habits are remembered, and hosts of each. */
const maxActivities = 20_000
const maxHostsOfAgent = 256

export function createDataPlane(dataPlane: DataPlaneParts): DataPlane {
  const { config, clock, log, upstreams, identity, rules, limits, metrics } = dataPlane
  const activity = createActivityLog({ agents: maxActivities, hostsPerAgent: maxHostsOfAgent })
  const shadows = createShadowTally()
  const { rateLimiter, breaker, inFlight } = limits
  const { registry } = identity
  const watch = createWatch(clock, config.System.Server.IdleTimeoutSeconds * 1_000, inFlight)
  const record = createRecorder({
    log,
    clock,
    access: config.Logging.Access,
    activity,
    shadows,
    metrics,
    onTrust: (id, event, requestId) => registry.recordTrust(id, event, requestId),
  })
  const parts: Omit<Parts, keyof Reviews> = {
    ...upstreams,
    config,
    clock,
    rateLimiter,
    breaker,
    watch,
    metrics,
    verifyToken: identity.tokens.verify,
    agentOf: id => registry.get(id),
    trustOf: agent => registry.trustOf(agent),
    rulebookOf: rules.rulebookOf,
    activityOf: (id, now) => activity.of(id, now),
    clientIpOf: dataPlane.clientIpOf,
    settled: record,
    report: dataPlane.report,
  }
  return {
    roadWith({ queue, grants }) {
      const all: Parts = { ...parts, queue, grants }
      return arrival => enforce(arrival, all)
    },
    activity,
    shadows,
    send: createSender(parts),
    sweep() {
      watch.sweep()
      activity.sweep(clock.now())
      metrics?.set(upstreamConnections, upstreams.connections.size)
    },
  }
}
