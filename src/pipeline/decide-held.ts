/** The decision on a held request, made again when it is about to be sent: its agent's policy may have changed. */
import type { Target } from '../base/target.ts'
import { type Refusal, refuse } from '../errors.ts'
import type { HeldFacts, HeldRequest, NotSent } from '../hitl/model.ts'
import { BodyDecision, decideHead } from '../policy/evaluation/decide.ts'
import type { Decision, DecisionRecord } from '../policy/evaluation/decision.ts'
import type { Rulebook } from '../policy/evaluation/rulebook.ts'
import { headOf } from '../policy/request/describe.ts'
import { destinationOf } from '../policy/request/destination.ts'
import type { RequestHead } from '../policy/request/input.ts'
import { readMcpHeads } from '../policy/request/mcp-heads.ts'
import type { AgentRecord } from '../storage/store.ts'
import type { Resolution } from '../upstream/resolve.ts'
import { agentFacts } from './decide.ts'
import type { Parts } from './parts.ts'

export type HeldParts = Pick<Parts, 'activityOf' | 'clock' | 'config' | 'workTurns'>

/** A held request and what a decision reads beside it. */
export interface Held {
  readonly request: HeldRequest
  readonly facts: HeldFacts
  /** Verdicts of different reviewers that it has. */
  readonly approvals: number
  readonly target: Target
  readonly agent: AgentRecord
  /** Undefined while no rule asks for the address. */
  readonly resolution: Resolution | undefined
}

/**
 * Why the rules that are in force now do not let an approved request pass; undefined when they allow it or ask for the
 * approvals that it has. Time, trust, counters and the agent's data are those of now; the token and the client are those
 * of the held request.
 */
export async function refuseHeld(held: Held, rulebook: Rulebook, parts: HeldParts): Promise<NotSent | undefined> {
  const decision = await decideHeld(held, rulebook, parts)
  if (decision.decision === 'Allow' || parts.config.Policy.Mode === 'observe') return undefined
  return decision.decision === 'Deny' ? denied(decision) : approvalsMissing(decision, held.approvals)
}

function denied(decision: DecisionRecord): Refusal {
  const { source, policy, policyVersion, rule, reason } = decision
  const by = rule === null ? source : `rule "${rule}"`
  const detail = `The policy that is in force now denies this request (${by}). It was not sent.`
  const members = { policy, policyVersion, rule, source, reason }
  return refuse(source === 'error' ? 'policy_error' : 'policy_denied', detail, { members })
}

function approvalsMissing(decision: DecisionRecord, approvals: number): NotSent | undefined {
  const { policy, policyVersion, rule, approvals: approvalsNeeded } = decision
  if (approvalsNeeded <= approvals) return undefined
  const detail = `The policy that is in force now needs ${approvalsNeeded} approvals, and this request has ${approvals}. It was not sent, and waits for all of them.`
  const members = { policy, policyVersion, rule, approvals, approvalsNeeded }
  return { ...refuse('wrong_state', detail, { members }), approvalsNeeded }
}

async function decideHeld(held: Held, rulebook: Rulebook, parts: HeldParts): Promise<Decision> {
  const head = viewOf(held, parts)
  const first = decideHead(rulebook, head)
  if (!('need' in first)) return first
  const { body } = held.request
  const most = parts.config.Proxy.MaxEvaluatedBodyBytes
  const read = { bytes: body.subarray(0, most), complete: body.byteLength <= most }
  const open = new BodyDecision(rulebook, head, first, read)
  for (let begun = false; ; begun = true) {
    await parts.workTurns.next(held.agent.id, begun)
    const decision = open.takeTurn()
    parts.workTurns.spend(open.steps)
    if (decision !== undefined) return decision
  }
}

function viewOf({ request, facts, target, agent, resolution }: Held, parts: HeldParts): RequestHead {
  const now = parts.clock.now()
  const ip = resolution?.addresses[0] ?? target.origin.address
  return {
    ...headOf(target),
    method: request.method,
    rawHeaders: facts.rawHeaders,
    mcp: readMcpHeads({ ...request, hasBody: request.body.byteLength > 0, rawHeaders: facts.rawHeaders }),
    contentLength: request.body.byteLength,
    clientIp: facts.clientIp,
    destination: ip === undefined ? undefined : destinationOf(ip),
    agent: agentFacts(agent, facts.claims, now),
    activity: parts.activityOf(agent.id, now),
    now,
  }
}
