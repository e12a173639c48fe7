import type { Refusal } from '../../base/refusals.ts'
import type { CredentialRequest, PickedCredential } from '../../credentials/credentials.ts'
import type { SubjectToken } from '../../credentials/subject-token.ts'
import type { Permit } from '../../limits/breaker.ts'
import type { MessageNames } from '../../policy/evaluation/decide.ts'
import type { Decision } from '../../policy/evaluation/decision.ts'
import type { Rulebook } from '../../policy/evaluation/rulebook.ts'
import type { RequestBody, RequestHead, SpendFacts } from '../../policy/request/input.ts'
import type { AgentRecord } from '../../storage/store.ts'
import type { Claims } from '../../tokens/verify.ts'
import type { Resolution } from '../../upstream/resolve.ts'
import type { Checked } from '../exchange.ts'
import type { OutboundParts } from '../parts.ts'

/**
 * A request of an agent on its way to its upstream: one that arrives (exchange.ts), or a held one after its approval
 * (approved.ts). The steps fill it.
 */
export interface Call extends Pick<CredentialRequest, 'target' | 'rawHeaders' | 'tokenNames'> {
  readonly agent: AgentRecord
  /** Claims of the token with which the agent sent it. */
  readonly claims: Partial<Claims>
  /** That token, if upstreams may get credentials for it. */
  readonly subjectToken: SubjectToken | undefined
  readonly method: string
  readonly hasBody: boolean
  readonly requestId: string | undefined
  /** A person has approved it: it is sent once at most. */
  readonly isApproved: boolean
  /** CONNECT to a host that is not opened: nothing of what follows can be read, or added. */
  readonly isTunnel: boolean
  /** The call was ended, or nobody waits for its answer: no more work may be done for it. */
  readonly isOver: boolean
  permit: Permit | undefined
  /** The rules that decided: they must be in force still when the request leaves. */
  rulebook: Rulebook | undefined
  decision: Decision | undefined
  /** Time that the decision took, nanoseconds. */
  decisionNs: number
  /** Names in its body, for its trace; undefined when no rule read it. */
  names: MessageNames | undefined
  /** What is spent of budgets; undefined: no rule reads it, or it is not known. */
  spent: SpendFacts | undefined
  /** The checked addresses: the connection goes to no other. */
  resolution: Resolution | undefined
  /** What the gateway adds when it sends; undefined when it adds nothing. */
  credentials: readonly PickedCredential[] | undefined
}

/** The parts of a call in which live and approved requests differ. */
export interface CallKind<C extends Call> {
  viewOf(call: C, parts: OutboundParts): RequestHead
  /** The bytes of its body that a decision may read. */
  bodyOf(call: C, parts: OutboundParts): RequestBody | Refusal | Promise<RequestBody | Refusal>
  /** Checked after a wait. `again`: the call must be decided again. */
  stillHolds(call: C, parts: OutboundParts): Refusal | 'again' | undefined
  /** Applies the decision: a refusal, or nothing and the call goes on. */
  judge(call: C, decision: Decision, parts: OutboundParts): Refusal | undefined
}

/** A step of a call of any kind. */
export interface OutboundStep {
  readonly name: string
  run<C extends Call>(call: C, parts: OutboundParts, kind: CallKind<C>): Checked | Promise<Checked>
}
