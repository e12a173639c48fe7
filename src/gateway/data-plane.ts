import type { Registry } from '../agents/registry.ts'
import { matchesAnyHost, parseHostPatterns } from '../base/host.ts'
import { refuse } from '../base/refusals.ts'
import { maxHeldBytes } from '../config/check.ts'
import type { Config } from '../config/schema.ts'
import { resetConnection } from '../http/reset.ts'
import type { CurrentLeafs } from '../intercept/current-leafs.ts'
import type { RecentActivity } from '../limits/recent-activity.ts'
import { createBodyMemory } from '../pipeline/body-memory.ts'
import type { ClientIp } from '../pipeline/client-ip.ts'
import { createEndListeners } from '../pipeline/ends/listeners.ts'
import { ShapeRecorder } from '../pipeline/ends/recorder.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import { withLog } from '../pipeline/held/replay-log.ts'
import { withSpan } from '../pipeline/held/replay-span.ts'
import { createSender } from '../pipeline/outbound/replay.ts'
import type { OutboundParts, Parts, Reviews } from '../pipeline/parts.ts'
import { createPipeline } from '../pipeline/pipeline.ts'
import { end, endFenced, endUnlessActive, forgetGrant } from '../pipeline/rights.ts'
import { createWatch } from '../pipeline/watch.ts'
import { createWorkTurns, type WorkTurns } from '../pipeline/work-turns.ts'
import { type Bounds, createBounds } from '../telemetry/bounds.ts'
import { upstreamConnections, upstreamWaiting } from '../telemetry/layout.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing/tracing.ts'
import type { Verify } from '../tokens/verify.ts'
import { type Base, publicUrlOf } from './base.ts'
import { openForwardProxy } from './interception.ts'
import type { Rules } from './rules.ts'
import type { SharedLimits } from './shared.ts'
import { createMetering } from './spend.ts'
import type { Upstreams } from './upstreams.ts'

export interface DataPlaneParts
  extends Pick<Base, 'config' | 'onSettings' | 'clock' | 'log' | 'report' | 'fenceWatch'> {
  readonly upstreams: Upstreams
  readonly agents: Pick<Registry, 'get' | 'subscribe' | 'recordTrust'>
  readonly verifyToken: Verify
  readonly rulebookOf: Rules['rulebookOf']
  readonly limits: SharedLimits
  readonly recent: RecentActivity
  /** Undefined without a forward proxy. */
  readonly leafs: CurrentLeafs | undefined
  /** Undefined when nothing is counted. */
  readonly metrics: Metrics
  /** Undefined when traces are not recorded. */
  readonly tracing: Tracing | undefined
  readonly fencedAs: Parts['fencedAs']
  readonly clientIpOf: ClientIp
}

/** All parts that a proxied request passes. */
export type DataPlane = ReturnType<typeof createDataPlane>

/**
 * Memory for bodies that a thread keeps for the next ones, bytes: together half of what may be held. It is freed after a
 * second or two without bodies.
 */
const maxSpareMemory = (config: Config): number => maxHeldBytes(config) / (2 * config.System.Server.Threads)

/** Window over which the rate of bodies is measured, milliseconds. */
const paceWindowMs = 30_000

function watchSettings({ System: { Server } }: Config) {
  const pace = { bytesPerSecond: Server.MinBodyBytesPerSecond, windowMs: paceWindowMs }
  return { idleMs: Server.IdleTimeoutSeconds * 1_000, pace }
}

function endSlow(exchange: Exchange, bounds: Bounds): void {
  bounds.reached('body_pace', exchange.agent?.id, exchange.requestId)
  end(exchange, refuse('request_timeout', 'The request body came too slowly.'))
}

/** The system keeps some megabytes for a client that does not read: a reset frees them, and ends the upstream request. */
function resetStalled({ agent, requestId, socket }: Exchange, bounds: Bounds): void {
  bounds.reached('answer_stalled', agent?.id, requestId)
  resetConnection(socket)
}

const endsOf = (bounds: Bounds): { onSlow(exchange: Exchange): void; onStalled(exchange: Exchange): void } => ({
  onSlow: exchange => endSlow(exchange, bounds),
  onStalled: exchange => resetStalled(exchange, bounds),
})

function logEnded(count: number, log: Base['log']): void {
  const reason = `the gateway may lack changes; ${count} were under way in this thread`
  if (count > 0) log.warn({ reason }, 'requests under way were ended')
}

/** Whether WebSockets may be opened to a host. */
function upgradesOf({ Proxy: { AllowUpgrade } }: Config): Parts['allowsUpgrade'] {
  const patterns = parseHostPatterns(AllowUpgrade)
  return host => matchesAnyHost(patterns, host)
}

/** Bytes of bodies that wait to be read for their shapes, in all threads. */
const maxRecordedBytes = 16_777_216

function createRecorder({ config, report }: DataPlaneParts, turns: WorkTurns): ShapeRecorder | undefined {
  const { Recording, System } = config
  if (Recording.Mode === 'off') return undefined
  const limits = { shapesPerAgent: Recording.ShapesPerAgent, maxBytes: maxRecordedBytes / System.Server.Threads }
  return new ShapeRecorder(limits, turns, error => report('shapes of requests could not be read', error))
}

export function createDataPlane(dataPlane: DataPlaneParts) {
  const { config, clock, log, report, upstreams, agents, limits, metrics, tracing } = dataPlane
  const { verifyToken, rulebookOf, fencedAs, clientIpOf, recent } = dataPlane
  const { agentRate, breaker, requests, heldBytes, inFlight } = limits
  const bounds = createBounds({ clock, log, metrics })
  const watch = createWatch({ clock, ...watchSettings(config), ...endsOf(bounds) }, inFlight)
  const workTurns = createWorkTurns()
  const recorder = createRecorder(dataPlane, workTurns)
  const ends = createEndListeners({ ...recent, recorder, config, clock, log, metrics, tracing, clientIpOf, agents })
  const forward = openForwardProxy({ ...dataPlane, bounds })
  const parts: OutboundParts = {
    ...{ ...upstreams, config, clock, metrics, tracing, agents, verifyToken, rulebookOf, fencedAs, clientIpOf, report },
    ...{ agentRate, requests, heldBytes, breaker, bounds, watch, workTurns, ends },
    allowsUpgrade: upgradesOf(config),
    bodyMemory: createBodyMemory(maxSpareMemory(config)),
    ...{ tunnels: forward.tunnels, interception: forward.interception },
    activity: recent.activity,
    publicUrl: publicUrlOf(config),
    ...createMetering({ config, clock, metrics, prices: upstreams.prices, spend: limits.spend }),
  }
  agents.subscribe((id, now, before) => endUnlessActive(id, { before, now }, parts))
  dataPlane.fenceWatch?.subscribe(() => logEnded(endFenced(parts), log))
  return {
    /** Builds the pipeline, once human in the loop exists. */
    createPipeline: (reviews: Reviews) => createPipeline(parts, reviews, dataPlane.onSettings),
    /** Sends approved requests. */
    send: withSpan(withLog(createSender(parts), { log, clock, metrics }), parts),
    bounds,
    /** Undefined without a forward proxy. */
    interception: forward.interception,
    workTurns,
    /** Undefined when nothing is recorded. */
    recorder,
    /** Decides requests again that this grant (undefined: any grant) let pass and that were not sent yet. */
    forgetGrant: (id: string | undefined) => forgetGrant(id, parts),
    /** Forgets idle entries and ends stalled exchanges. Call about every second. */
    sweep() {
      watch.sweep()
      parts.bodyMemory.sweep()
      upstreams.credentials.sweep()
      dataPlane.recent.activity.sweep(clock.now())
      metrics.set(upstreamConnections, upstreams.connections.size)
      metrics.set(upstreamWaiting, upstreams.connections.waiting)
      forward.sweep()
    },
  }
}
