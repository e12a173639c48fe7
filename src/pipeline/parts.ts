import type { Registry } from '../agents/registry.ts'
import type { ToolNotes } from '../agents/tools.ts'
import type { Config } from '../config/schema.ts'
import type { Credentials } from '../credentials/credentials.ts'
import type { Grants } from '../hitl/grants.ts'
import type { Queue } from '../hitl/queue.ts'
import type { Interception } from '../intercept/interception.ts'
import type { ActivityLog } from '../limits/activity.ts'
import type { Breaker } from '../limits/breaker.ts'
import type { CallerRate } from '../limits/caller-rate.ts'
import type { Quota } from '../limits/quota.ts'
import type { SharedAmount } from '../limits/shared-table.ts'
import type { Rulebook } from '../policy/evaluation/rulebook.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AgentRecord } from '../storage/store.ts'
import type { Bounds } from '../telemetry/bounds.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing/tracing.ts'
import type { Verify } from '../tokens/verify.ts'
import type { Connections } from '../upstream/connections.ts'
import type { Dial } from '../upstream/dial.ts'
import type { UpstreamRoute } from '../upstream/resolve.ts'
import type { AnswerReader } from './answers/reader.ts'
import type { MeterOf } from './answers/usage-meter.ts'
import type { BodyMemory } from './body-memory.ts'
import type { BillParts } from './budgets/bill.ts'
import type { BudgetParts } from './budgets/reservation.ts'
import type { ClientIp } from './client-ip.ts'
import type { EndListener } from './ends/listener.ts'
import type { Exchange } from './exchange.ts'
import type { OpenTunnels } from './open-tunnels.ts'
import type { ExchangeWatch } from './watch.ts'
import type { WorkTurns } from './work-turns.ts'

/** The parts of human in the loop that the pipeline uses. They use the pipeline to send. */
export type Reviews = Pick<Parts, 'queue' | 'grants' | 'noteTools'>

/** Parts for sending a call, live or held. */
export type OutboundParts = Omit<Parts, keyof Reviews | 'readers'>

export type ReaderParts = Omit<Parts, 'readers'>

/** The parts of the gateway that the pipeline uses. None of them waits for the store on an allowed request. */
export interface Parts {
  readonly config: Config
  readonly clock: Clock
  /** Verifies a token that this gateway or the configured identity provider issued. */
  readonly verifyToken: Verify
  readonly agents: Pick<Registry, 'get'>
  readonly agentRate: CallerRate
  /** Requests under way, by agent. */
  readonly requests: Pick<SharedAmount, 'take' | 'give'>
  readonly heldBytes: Pick<Quota<'held_bytes' | 'agent_held_bytes'>, 'take' | 'give'>
  readonly bodyMemory: BodyMemory
  readonly bounds: Bounds
  readonly breaker: Breaker
  readonly route: UpstreamRoute
  readonly connections: Connections
  /** For tunnels that are not opened. */
  readonly dialTcp: Dial
  readonly allowsUpgrade: (host: string) => boolean
  readonly credentials: Credentials
  readonly rulebookOf: (agent: AgentRecord) => Rulebook
  readonly activity: Pick<ActivityLog, 'of'>
  /**
   * Set when nothing may be sent because this thread may lack the latest changes: the main thread has given this thread up
   * because it hung, or the gateway cannot reach its database. Absent when neither can be.
   */
  readonly fencedAs: (() => 'draining' | 'fenced' | undefined) | undefined
  readonly clientIpOf: ClientIp
  /** Origin of System:PublicUrl. */
  readonly publicUrl: string | undefined
  /** Readers of answers, in the order in which answers pass them. */
  readonly readers: readonly AnswerReader[]
  /** Undefined when it is not read what calls use. */
  readonly meterOf: MeterOf | undefined
  /** What calls of models can cost; undefined when calls are not metered. */
  readonly bill: BillParts | undefined
  /** Undefined without budgets. */
  readonly budgets: BudgetParts | undefined
  readonly watch: ExchangeWatch
  readonly tunnels: OpenTunnels
  /** Undefined without a forward proxy. */
  readonly interception: Interception | undefined
  /** Turns for decisions on long bodies. */
  readonly workTurns: WorkTurns
  /** Undefined when nothing is counted. */
  readonly metrics: Metrics
  /** Records the tools that are listed to an agent. */
  readonly noteTools: ToolNotes['note']
  readonly grants: Pick<Grants, 'covers' | 'use' | 'giveBack'>
  readonly queue: Pick<Queue, 'suspend' | 'checkKey' | 'waitAsCall' | 'cancelCall' | 'answer'>
  /** Undefined when traces are not recorded. */
  readonly tracing: Tracing | undefined
  readonly ends: readonly EndListener[]
  /** Called for faults of the gateway itself. */
  readonly report: (what: string, error: unknown) => void
}

/** Starts a request again whose right to go on has changed. */
export type Again = (exchange: Exchange, parts: Parts) => void
