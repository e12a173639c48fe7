/** Held requests that were approved, as calls. Time, trust, counters and the agent's data are the current ones. */

import { agentProblem } from '../../agents/agent.ts'
import { type Refusal, refuse } from '../../base/refusals.ts'
import { parseTarget, type Target } from '../../base/target.ts'
import type { PickedCredential } from '../../credentials/credentials.ts'
import { identitiesOf } from '../../credentials/placement.ts'
import type { SubjectToken } from '../../credentials/subject-token.ts'
import type { HeldFacts, HeldRequest, NotSent, SendContext } from '../../hitl/model.ts'
import type { Permit } from '../../limits/breaker.ts'
import type { MessageNames } from '../../policy/evaluation/decide.ts'
import type { Allowed, Decision } from '../../policy/evaluation/decision.ts'
import type { Rulebook } from '../../policy/evaluation/rulebook.ts'
import type { SpendFacts } from '../../policy/request/input.ts'
import { type McpHeads, readMcpHeads } from '../../policy/request/mcp-heads.ts'
import type { AgentRecord } from '../../storage/store.ts'
import { keyIdOf } from '../../tokens/agent-key.ts'
import type { Resolution } from '../../upstream/resolve.ts'
import type { UsageMeter } from '../answers/usage-meter.ts'
import type { SpendReservation } from '../budgets/reservation.ts'
import type { OutboundParts } from '../parts.ts'
import type { Call, CallKind } from './call.ts'
import { RequestView } from './live.ts'

/** A held request after its approval. The token and the client are those of the original request. */
export class ApprovedCall implements Call {
  readonly request: HeldRequest
  readonly context: SendContext
  readonly agent: AgentRecord
  readonly target: Target
  readonly tokenNames: readonly string[] = []
  permit: Permit | undefined = undefined
  rulebook: Rulebook | undefined = undefined
  decision: Decision | undefined = undefined
  decisionNs = 0
  names: MessageNames | undefined = undefined
  spent: SpendFacts | undefined = undefined
  resolution: Resolution | undefined = undefined
  credentials: readonly PickedCredential[] | undefined = undefined
  spend: SpendReservation | undefined = undefined
  budget: string | undefined = undefined
  charged: number | undefined = undefined
  unpriced: string | undefined = undefined
  /** Reads what it uses; undefined when nothing does. */
  meter: UsageMeter | undefined = undefined

  constructor(request: HeldRequest, context: SendContext, { agent, target }: Pick<Call, 'agent' | 'target'>) {
    this.request = request
    this.context = context
    this.agent = agent
    this.target = target
  }

  get claims(): HeldFacts['claims'] {
    return this.context.facts.claims
  }

  /** Without the token itself, which is not stored. */
  get subjectToken(): SubjectToken | undefined {
    const { tokenDigest: digest } = this.context.facts
    const { exp } = this.claims
    if (digest === undefined || typeof exp !== 'number') return undefined
    return { agentId: this.agent.id, digest, token: undefined, endsAt: exp * 1_000 }
  }

  get isApproved(): boolean {
    return true
  }

  get isTunnel(): boolean {
    return false
  }

  get method(): string {
    return this.request.method
  }

  get rawHeaders(): readonly string[] {
    return this.request.rawHeaders
  }

  get hasBody(): boolean {
    return this.request.body.byteLength > 0
  }

  get requestId(): string | undefined {
    return this.context.requestId ?? undefined
  }

  /** The gateway is stopping and does not wait for the outcome. */
  get isOver(): boolean {
    return this.context.abandoned.aborted
  }
}

/** A refusal when its agent or its key is gone. */
export function openApproved(
  request: HeldRequest,
  context: SendContext,
  { agents }: OutboundParts,
): ApprovedCall | Refusal {
  const target = parseTarget(request.url)
  if (typeof target === 'string') return refuse('invalid_target', target)
  const agent = agents.get(context.agentId)
  if (agent === undefined) return refuse('unauthenticated')
  return keyProblem(agent, context) ?? new ApprovedCall(request, context, { agent, target })
}

export const approved: CallKind<ApprovedCall> = {
  viewOf: (call, parts) => new ApprovedView(call, call.request.body.byteLength, parts),
  bodyOf({ request: { body } }, { config }) {
    const max = config.Proxy.MaxEvaluatedBodyBytes
    return { bytes: body.subarray(0, max), complete: body.byteLength <= max }
  },
  stillHolds({ context, rulebook }, parts) {
    const fenced = parts.fencedAs?.()
    if (fenced !== undefined) return refuse(fenced)
    const agent = parts.agents.get(context.agentId)
    if (agent === undefined) return agentProblem(agent)
    const problem = agentProblem(agent) ?? keyProblem(agent, context)
    return problem ?? (parts.rulebookOf(agent) === rulebook ? undefined : 'again')
  },
  judge({ context }, decision, { config }) {
    if (decision.decision === 'Allow' || config.Policy.Mode === 'observe') return undefined
    return decision.decision === 'Deny' ? denied(decision) : approvalsMissing(decision, context.approvals)
  },
}

const keyRevoked = refuse(
  'wrong_state',
  'The key with which the agent sent this request has been revoked. It was not sent: deny it, or let it lapse.',
)

/** Whoever sent the request may have used a key that is revoked now. */
function keyProblem({ keys }: AgentRecord, { facts }: SendContext): Refusal | undefined {
  const keyId = keyIdOf(facts.claims)
  return keyId === undefined || keys.some(({ id }) => id === keyId) ? undefined : keyRevoked
}

/** What was approved is a request with these credentials: with others it would act for somebody else. */
export function credentialProblem({ credentials, context }: ApprovedCall): Refusal | undefined {
  const { credentials: held } = context.facts
  const now = identitiesOf(credentials)
  if (held === undefined || now === held) return undefined
  const [before, after] = [held || 'no credential', now || 'none']
  return refuse(
    'wrong_state',
    `This request was held with ${before}, and would now be sent with ${after}. It was not sent: deny it, or let it lapse.`,
  )
}

type Withheld = Exclude<Decision, Allowed>

function denied({ source, policy, policyVersion, rule, reason }: Withheld): Refusal {
  const by = rule === null ? source : `rule "${rule}"`
  const detail = `The policy that is in force now denies this request (${by}). It was not sent.`
  const members = { policy, policyVersion, rule, source, reason }
  return refuse(source === 'error' ? 'policy_error' : 'policy_denied', detail, { members })
}

/** A rule that needs no more approvals than the request has lets it pass. */
function approvalsMissing(decision: Withheld, approvals: number): NotSent | undefined {
  const { policy, policyVersion, rule, approvals: approvalsNeeded } = decision
  if (approvalsNeeded <= approvals) return undefined
  const detail = `The policy that is in force now needs ${approvalsNeeded} approvals, and this request has ${approvals}. It was not sent, and waits for all of them.`
  const members = { policy, policyVersion, rule, approvals, approvalsNeeded }
  return { ...refuse('wrong_state', detail, { members }), approvalsNeeded }
}

class ApprovedView extends RequestView<ApprovedCall> {
  get mcp(): McpHeads | undefined {
    const hasBody = this.contentLength > 0
    return readMcpHeads({ method: this.method, hasBody, rawHeaders: this.rawHeaders })
  }

  get rawHeaders(): readonly string[] {
    return this.call.context.facts.rawHeaders
  }

  get clientIp(): string {
    return this.call.context.facts.clientIp
  }
}
