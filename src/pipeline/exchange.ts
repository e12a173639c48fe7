import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FailureKind } from '../base/failure-kinds.ts'
import { type RefusalCode, refusalKinds } from '../base/refusal-kinds.ts'
import type { Refusal } from '../base/refusals.ts'
import type { Target } from '../base/target.ts'
import type { PickedCredential } from '../credentials/credentials.ts'
import { type SubjectToken, subjectTokenOf } from '../credentials/subject-token.ts'
import type { UsedGrant } from '../hitl/grants.ts'
import type { HeldBudget } from '../hitl/model.ts'
import type { ProxyIncoming } from '../http/accept.ts'
import type { Addressing } from '../http/addressing.ts'
import type { RequestFields } from '../http/headers.ts'
import type { Permit } from '../limits/breaker.ts'
import type { MessageNames } from '../policy/evaluation/decide.ts'
import type { Decision } from '../policy/evaluation/decision.ts'
import type { Rulebook } from '../policy/evaluation/rulebook.ts'
import type { Effect } from '../policy/language/model.ts'
import type { SpendFacts } from '../policy/request/input.ts'
import type { AgentRecord, GrantRecord } from '../storage/store.ts'
import type { RequestTrace } from '../telemetry/tracing/tracing.ts'
import type { Claims } from '../tokens/verify.ts'
import type { Resolution } from '../upstream/resolve.ts'
import type { Interest } from './answers/interest.ts'
import type { UsageMeter } from './answers/usage-meter.ts'
import type { BodyLoan } from './body-memory.ts'
import type { SpendReservation } from './budgets/reservation.ts'
import type { RpcAnswer } from './mcp/rpc-answer.ts'

/** How an exchange ended. `aborted`: the client left first. `broken`: the upstream broke off midway. */
export type Ending = 'forwarded' | 'refused' | 'suspended' | 'aborted' | 'broken'

/**
 * Result of a check: a refusal, or nothing and the next step follows. `again`: the right to go on changed while the step
 * waited, and the request starts again.
 */
export type Checked = Refusal | 'again' | undefined
/**
 * Result of a step. `answered`: no step follows. `handed over`: the same, and what follows on its connection is no answer to
 * it.
 */
export type StepOutcome = Checked | 'answered' | 'handed over'
export type StepResult = StepOutcome | Promise<StepOutcome>

export interface ExchangeSender {
  clientClosed(): void
  /**
   * Asked first, of a metered request. Undefined when nothing more is read of its answer; otherwise it resolves when that is
   * over, and `clientClosed` does nothing then.
   */
  readOn?(): Promise<void> | undefined
  /** Ends the request at once: nothing more is sent, in either direction. */
  end(refusal: Refusal): void
}

/** Bytes that a client had sent and received at the last check (watch.ts). Times are steady milliseconds. */
export interface TransferProgress {
  bytesRead: number
  bytesSent: number
  /** Since when no byte came. */
  since: number
  checkedAt: number
  /** Bytes read at the start of the window over which the pace of the body is measured. */
  windowBytes: number
  /** Time in this window in which the client could send. */
  sendingMs: number
}

/** The record of one request in flight, filled step by step. A step reads what earlier steps have set. */
export class Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Kept here: the request loses its own reference when its body is handed on. */
  readonly socket: Socket
  readonly requestId: string
  readonly rawTarget: string
  readonly addressing: Addressing
  fields: RequestFields
  readonly expectsContinue: boolean
  /** The request has taken over its connection: no other request follows. */
  readonly isUpgraded: boolean
  /** Steady milliseconds. */
  readonly startedAt: number

  agent: AgentRecord | undefined = undefined
  claims: Claims | undefined = undefined
  /** The accepted token. It must still be valid when the request is sent. */
  token = ''
  /** Names of the fields that carried or may carry a token, as `foldName` writes them; never sent upstream. */
  tokenNames: readonly string[] = []
  /** It has counted against the rate of its agent. */
  isCounted = false
  target: Target | undefined = undefined
  permit: Permit | undefined = undefined
  resolution: Resolution | undefined = undefined
  /** The rules that decided: they must be in force still when the request leaves. */
  rulebook: Rulebook | undefined = undefined
  decision: Decision | undefined = undefined
  /** When it was handed to its upstream, steady milliseconds. */
  sentAt: number | undefined = undefined
  /** Time that the decision took, nanoseconds. */
  decisionNs = 0
  /** Names in its body, for its trace. */
  names: MessageNames | undefined = undefined
  /** The effect that is applied: that of the decision, or Allow when the gateway only observes. */
  effect: Effect | undefined = undefined
  /** The bytes a decision was made on; what is sent upstream. Undefined while the body streams. */
  body: Buffer | undefined = undefined

  /** The loan of its body to the parts that send it; undefined when the memory of the body is not used again. */
  loan: BodyLoan | undefined = undefined

  /** Bytes of its body that count as held (hold-body.ts). */
  held = 0

  /** Time in which it waited for its body, milliseconds. */
  bodyMs = 0

  /** What the gateway adds when it sends; undefined when it adds nothing. */
  credentials: readonly PickedCredential[] | undefined = undefined

  /** Why its answer is read before the agent gets it (answers/); undefined when nothing reads it. */
  interests: readonly Interest[] | undefined = undefined

  /** Reads what it uses; undefined when nothing does. */
  meter: UsageMeter | undefined = undefined

  /** What it has reserved of budgets (budgets/); undefined once it was settled. */
  spend: SpendReservation | undefined = undefined
  spent: SpendFacts | undefined = undefined
  budget: string | undefined = undefined
  charged: number | undefined = undefined
  unpriced: string | undefined = undefined
  /** The budget at whose limit it is held, once its decision says so. */
  heldBudget: HeldBudget | undefined = undefined

  sender: ExchangeSender | undefined = undefined
  /** It was sent once more, on another connection (`maySendAgain`). */
  sentAgain = false
  /** Its wait for a verdict; undefined while it does not wait. `end`: as if its time were over. */
  wait: { end(): void } | undefined = undefined
  refusal: RefusalCode | undefined = undefined
  /** Why it was refused, for the log alone. */
  cause: string | undefined = undefined
  /** Why the upstream could not be reached or broke off. */
  failure: FailureKind | undefined = undefined
  hitlId: string | undefined = undefined
  /** Answers the JSON-RPC requests of an MCP client; undefined for other requests, and until they are read. */
  rpc: RpcAnswer | undefined = undefined
  /** The grant by which it passed without asking. */
  grantId: string | undefined = undefined
  /** The same, while that use of it stands: it is not counted again when the request begins again. */
  usedGrant: GrantRecord | undefined = undefined
  /** That use, with the idempotency key that it took, until the request leaves; also of a grant that was withdrawn since. */
  unsentUse: UsedGrant | undefined = undefined
  ending: Ending | undefined = undefined
  upstreamStatus: number | undefined = undefined
  isEventStream = false
  bytesUp = 0
  bytesDown = 0
  /** Steady milliseconds since when the client has not taken what is there for it. */
  stalledSince: number | undefined = undefined
  /** Undefined until it was decided whether it is recorded; null: it is not (telemetry/tracing). */
  trace: RequestTrace | null | undefined = undefined
  /** When it waited for a verdict, steady milliseconds. */
  review: { readonly from: number; readonly to: number } | undefined = undefined
  /** Undefined until the exchange is first checked (watch.ts). */
  progress: TransferProgress | undefined = undefined
  /** Agent whose slot (MaxInFlight) it holds; see admit.ts. */
  slotOf: string | undefined = undefined
  rateFields: readonly string[] | undefined = undefined
  /** Its index among the exchanges in flight (watch.ts). */
  slot = -1
  /** Number of starts (pipeline.ts). */
  rounds = 0
  #continued = false

  constructor(arrival: ProxyIncoming, startedAt: number) {
    this.req = arrival.req
    this.res = arrival.res
    this.socket = arrival.req.socket
    this.requestId = arrival.requestId
    this.rawTarget = arrival.rawTarget
    this.addressing = arrival.addressing
    this.fields = arrival.fields
    this.expectsContinue = arrival.expectsContinue
    this.isUpgraded = arrival.isUpgraded
    this.startedAt = startedAt
  }

  /** The exchange was ended, or its client left: no more work may be done for it. */
  get isOver(): boolean {
    return this.refusal !== undefined || this.res.destroyed
  }

  /** How it ended; a refusal by its code. `answered`: the gateway answered by itself, and refused nothing. */
  get outcome(): string {
    const { ending, refusal } = this
    return ending === 'refused' ? (refusal ?? 'answered') : (ending ?? 'aborted')
  }

  /** Status that the agent got; 0 when it got none. */
  get status(): number {
    const { res, ending, refusal } = this
    if (ending === 'refused' && refusal !== undefined) return refusalKinds[refusal].status
    // The head of a WebSocket, and that of a tunnel, goes past `res`.
    if (this.upstreamStatus === 101) return 101
    if (this.isTunnel && this.sentAt !== undefined && ending !== 'aborted') return 200
    return res.headersSent ? res.statusCode : 0
  }

  get isApproved(): boolean {
    return false
  }

  get isTunnel(): boolean {
    return this.addressing.road === 'tunnel'
  }

  get subjectToken(): SubjectToken | undefined {
    const { agent, claims, token } = this
    return agent && claims && subjectTokenOf({ agentId: agent.id, claims, token })
  }

  get rawHeaders(): readonly string[] {
    return this.req.rawHeaders
  }

  get method(): string {
    // A request that a server gets always has one.
    return this.req.method ?? ''
  }

  get hasBody(): boolean {
    return this.fields.contentLength !== 0
  }

  /** Sends 100 Continue to a client that waits for it. Call it when the body is wanted. */
  continue(): void {
    if (!this.expectsContinue || this.#continued) return
    this.#continued = true
    this.res.writeContinue()
  }
}

export interface Authenticated extends Exchange {
  agent: AgentRecord
  claims: Claims
}

/** Its target is parsed, and it holds a slot of its agent. */
export interface Admitted extends Authenticated {
  target: Target
}

export interface Decided extends Admitted {
  decision: Decision
  effect: Effect
}

/** It may be sent: the addresses of its destination are checked. */
export interface Sendable extends Decided {
  resolution: Resolution
}

export const isAdmitted = (exchange: Exchange): exchange is Admitted => exchange.target !== undefined
