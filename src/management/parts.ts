import type { IncomingMessage } from 'node:http'
import type { AgentKeys } from '../agents/keys.ts'
import type { By, Registry } from '../agents/registry.ts'
import type { TrailVerification } from '../audit/verification.ts'
import type { Activity } from '../base/activity.ts'
import type { RefusalCode } from '../base/refusal-kinds.ts'
import type { Refusal } from '../base/refusals.ts'
import type { Budgets } from '../budgets/budgets.ts'
import type { Config } from '../config/schema.ts'
import type { FleetView } from '../fleet/view.ts'
import type { EventLog } from '../hitl/events.ts'
import type { Grants } from '../hitl/grants.ts'
import type { Push } from '../hitl/push/push.ts'
import type { Queue } from '../hitl/queue.ts'
import type { LinkCodes } from '../hitl/slack/link.ts'
import type { SignedCall } from '../hitl/slack/verify.ts'
import type { Authority } from '../intercept/authority.ts'
import type { Rotation } from '../intercept/stored-authority.ts'
import type { Denials, Incidents } from '../limits/incidents.ts'
import type { RuleTally } from '../limits/rule-tally.ts'
import type { RateLimit } from '../limits/token-bucket.ts'
import type { PolicyBook } from '../policies/book.ts'
import type { RuleUsage } from '../policies/drift.ts'
import type { PolicyThread } from '../policies/policy-thread.ts'
import type { OpenedSample } from '../policies/simulate.ts'
import type { CompiledPolicy } from '../policy/evaluation/compile.ts'
import type { LanguageOptions } from '../policy/language/parse.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AuditEntry, RecordedShapes, Store } from '../storage/store.ts'
import type { ExpositionFormat } from '../telemetry/exposition.ts'
import type { Gauges, Plots, TimeRange } from '../telemetry/history.ts'
import type { Tracing } from '../telemetry/tracing/tracing.ts'
import type { ConsoleSignIn } from '../tokens/console.ts'
import type { Grant } from '../tokens/grant.ts'
import type { Verify } from '../tokens/verify.ts'
import type { ConsoleFiles } from './console-files.ts'
import type { ManagedCredentials } from './credential-parts.ts'

/** Parts of the gateway that the control plane uses. */
export interface ManagementParts {
  readonly registry: Registry
  readonly keys: Pick<AgentKeys, 'create' | 'list' | 'revoke'>
  readonly book: PolicyBook
  /** Decides a described request, which was checked against openapi.json. */
  readonly explain: (policy: CompiledPolicy, request: unknown) => Promise<object | Refusal>
  readonly policyWork: PolicyThread
  readonly language: LanguageOptions
  readonly verification: Pick<TrailVerification, 'state'>
  readonly recording: {
    /** Recording:Mode is not off. */
    readonly isOn: boolean
    of(agentId: string): Promise<RecordedShapes>
    samplesOf(agentId: string): Promise<readonly OpenedSample[]>
    clear(agentId: string, by: By): Promise<void>
  }
  readonly hits: Pick<RuleTally, 'of'>
  readonly ruleHits: { of(policy: string): Promise<readonly RuleUsage[]> }
  /** How often rules in shadow would have decided otherwise. */
  readonly shadows: Pick<RuleTally, 'of'>
  readonly hitl: {
    readonly queue: Queue
    readonly grants: Pick<Grants, 'list' | 'revoke'>
    readonly events: EventLog
    /** Undefined without a Slack app. */
    readonly slack: SlackEntry | undefined
    /** Undefined without Web Push. */
    readonly push: Omit<Push, 'receivers'> | undefined
    /** Aborts when the gateway stops: streams of events end. */
    readonly stopping: AbortSignal
  }
  readonly budgets: Budgets
  readonly credentials: ManagedCredentials
  readonly grant: Grant
  readonly console: ConsoleSignIn
  /** Requests that nobody may decide of themselves: their own, or all of their owner. */
  readonly fourEyes: () => Config['HumanInTheLoop']['FourEyes']
  /** Verifies a token of the gateway or a key: management accepts no others (spec 5.3). */
  readonly verify: Verify
  /** The keys that verify tokens: others once all tokens were made void. */
  readonly tokenKeys: () => object
  readonly consoleFiles: ConsoleFiles
  /** The authority of the forward proxy; undefined without one. */
  readonly authority: ManagedAuthority | undefined
  readonly noteRefusal: (entry: AuditEntry) => Promise<unknown>
  readonly noteFailedLogin: (failed: FailedLogin) => void
  /** Takes one call of a caller: 0, or the milliseconds until it may call. A promise when the fleet must be asked. */
  readonly takeCall: (callerId: string) => number | Promise<number>
  readonly callLimit: () => RateLimit
  /** A call was refused by it. */
  readonly noteRateLimited: (callerId: string, requestId: string) => void
  readonly store: Pick<Store, 'audit' | 'identities' | 'ping'>
  /** Why nobody is let in, when the gateway may lack the latest changes. */
  readonly fencedAs: (() => 'fenced' | undefined) | undefined
  /** Calls `listener` when nobody is let in any more. Returns what ends that. */
  readonly onFenced: (listener: () => void) => () => void
  /** Why load balancers must send this gateway nothing; undefined while it serves. */
  readonly proxyRefusal: () => 'fenced' | 'draining' | undefined
  /** All gateways that share the store. */
  readonly fleet: () => FleetView
  readonly logIsWritten: () => boolean
  /** False while a thread hangs in a system call: it cannot be ended and replaced. */
  readonly threadsAnswer: () => boolean
  readonly metrics: { readonly page: (format: ExpositionFormat) => Promise<string>; readonly isPublic: boolean }
  /** Undefined when traces are not recorded. */
  readonly tracing: Tracing | undefined
  readonly countAnswer: (status: number) => void
  /** Undefined when metrics are switched off. Rejects when the store cannot be read. */
  readonly overview: (range: TimeRange) => Promise<OverviewReading>
  readonly incidents: Pick<Incidents, 'of'>
  readonly activityOf: (agentId: string, now: number) => Activity
  readonly clock: Clock
  /** Host names that calls may be addressed to; empty allows any. */
  readonly allowedHosts: readonly string[]
  /** Under which it may be reached besides its addresses. */
  readonly ownUrls: readonly string[]
  /** Address of the client: logins from it are slowed down after failures. */
  readonly clientAddress: (req: IncomingMessage) => string
}

/** What comes from Slack, and how people bind their accounts. */
export interface SlackEntry {
  readonly links: Pick<LinkCodes, 'open'>
  /** Whether the call is Slack's and was not taken before; undefined when clicks come another way. */
  readonly isSlack: ((call: SignedCall) => boolean) | undefined
  /** Takes a payload, and returns at once; false when there are too many. */
  readonly take: (payload: unknown) => boolean
}

/** The authority whose certificates stand in for those of upstreams. */
export interface ManagedAuthority {
  readonly current: () => Authority
  /** Replaces it in every thread. Rejects with a StoreError, and changes nothing, when that cannot be recorded. */
  rotate(rotation: Rotation, by: By): Promise<Authority | Refusal>
}

export interface OverviewReading {
  readonly plots: Plots
  /** Of the cost; null: calls of models are not metered. */
  readonly currency: string | null
  readonly now: Gauges
  readonly denials: Denials
}

/** A call of `POST /tokens` that got no token. */
export interface FailedLogin {
  readonly code: RefusalCode
  /** As the client sent it. */
  readonly agentId: string | undefined
  readonly address: string
  readonly requestId: string
}
