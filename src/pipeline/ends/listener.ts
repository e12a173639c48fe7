import type { Registry } from '../../agents/registry.ts'
import type { Target } from '../../base/target.ts'
import type { Config } from '../../config/schema.ts'
import type { ActivityLog } from '../../limits/activity.ts'
import type { Incidents } from '../../limits/incidents.ts'
import type { RuleTally } from '../../limits/rule-tally.ts'
import type { Log } from '../../log/log.ts'
import type { Decision } from '../../policy/evaluation/decision.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AgentRecord } from '../../storage/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Tracing } from '../../telemetry/tracing/tracing.ts'
import type { CallUsage } from '../answers/usage-meter.ts'
import type { ClientIp } from '../client-ip.ts'
import type { Exchange } from '../exchange.ts'
import type { ShapeRecorder } from './recorder.ts'

/** Called at the end of each exchange, with any outcome. `listeners.ts` lists all of them. */
export interface EndListener {
  /** For the log, when it throws. */
  readonly name: string
  /** @param at steady milliseconds */
  ended(exchange: Exchange, at: number): void
  /** A WebSocket is open: its end can be hours away. */
  opened?(exchange: Exchange): void
  /** A tunnel that the gateway reads was closed before a request came in it. */
  unused?(tunnel: UnusedTunnel): void
  /** An approved request that was metered is over. */
  replayed?(replay: MeteredReplay): void
  /** The answer to an approved request has begun. */
  approved?(call: AnsweredCall, status: number): void
}

/** A tunnel in which no request came. */
export interface UnusedTunnel {
  /** Request id of its CONNECT. */
  readonly id: string
  readonly agentId: string
  readonly keyId: string | undefined
  readonly clientIp: string
  readonly origin: string
  /** Why the gateway closed it. */
  readonly cause: string | undefined
  readonly ms: number
}

/** What an approved request used, and the budgets that count it. */
export interface MeteredReplay {
  readonly requestId: string | undefined
  readonly agentId: string
  readonly hitlId: string
  /** Undefined when nothing reads it, and when it got no answer. */
  readonly usage: CallUsage | undefined
  readonly budget: string | undefined
  readonly charged: number | undefined
}

export interface AnsweredCall {
  readonly agent: AgentRecord
  readonly target: Target
  readonly method: string
  readonly rawHeaders: readonly string[]
  readonly body: Uint8Array
  readonly decision: Decision
}

/** Causes that change the trust of an agent. */
export type TrustEvent = 'success' | 'policyDenial' | 'secretDetected'

export interface EndParts {
  readonly config: Pick<Config, 'Logging' | 'Metering' | 'Budgets' | 'Recording'>
  readonly clock: Clock
  readonly log: Pick<Log, 'line'>
  readonly clientIpOf: ClientIp
  readonly activity: ActivityLog
  /** Undefined when nothing is recorded. */
  readonly recorder: ShapeRecorder | undefined
  readonly hits: Pick<RuleTally, 'note'>
  readonly shadows: RuleTally
  readonly incidents: Pick<Incidents, 'note'>
  /** Undefined when nothing is counted. */
  readonly metrics: Metrics
  /** Undefined when traces are not recorded. */
  readonly tracing: Tracing | undefined
  readonly agents: Pick<Registry, 'recordTrust'>
}
