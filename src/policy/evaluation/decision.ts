import type { Effect, ReviewTerms } from '../language/model.ts'
import type { RiskSignal } from '../request/facts.ts'

/**
 * What made the decision. `error`: evaluation failed, and unknown is Deny; `mcp-mismatch`: head and body disagree; `budget`: a
 * budget of the agent is used up.
 */
export type DecisionSource =
  | 'rule'
  | 'default'
  | 'risk'
  | 'regardless-of-body'
  | 'global'
  | 'unassigned'
  | 'policy-missing'
  | 'mcp-mismatch'
  | 'budget'
  | 'error'

export interface MatchedCondition {
  readonly condition: string
  /** Redacted and cut to 64 characters. */
  readonly actual: unknown
}

/** A field of `chatFields` with its value, redacted and in one line. */
export interface ChatFact {
  readonly field: string
  readonly value: string
}

/** `atLeast`: not all was asked, since the rest could not have changed the outcome; the score may be higher. */
export interface RiskScore {
  readonly score: number
  readonly atLeast?: true
}

/** The decision that a rule or policy in shadow would have made. */
export interface ShadowOutcome {
  readonly rule: string
  readonly would: Effect
  /** Absent for a rule of the agent's own policy. */
  readonly policy?: string
}

/** The members of every decision. Plain data: it keeps nothing of the request in memory. */
interface DecisionCore {
  readonly source: DecisionSource
  readonly policy: string | null
  readonly rule: string | null
  /** Of an Allow: the budget that the rule names. */
  readonly budget: string | null
  /** The credential that the rule of the agent's policy names; null with Deny. */
  readonly credential: string | null
  readonly phase: 'head' | 'body'
  readonly evaluated: number
  readonly shadow: readonly ShadowOutcome[]
}

/** An allowed request of live traffic: as much as its log line and the agent's trust need. */
export interface Allowed extends DecisionCore {
  readonly decision: 'Allow'
  /** Signals are there when the body was read; null when nothing asked for the score. */
  readonly risk: (RiskScore & { readonly signals?: readonly RiskSignal[] }) | null
}

/** The whole decision record: API, review, audit (policy language, section "Decision record"). */
export interface DecisionRecord<E extends Effect = Effect> extends DecisionCore, ReviewTerms {
  readonly decision: E
  readonly policyVersion: string | null
  readonly priority: number | null
  /** For operators, also in the log: fields, operators and operands of rules, never values of the request. */
  readonly reason: string
  /** For the agent: never actual values, never the rule list. */
  readonly publicReason: string
  /** For reviewers: the author's words, null without a rule or where it has none. */
  readonly ruleReason: string | null
  /** For reviewers: the title of the rule with the values of the request; null where it has none. */
  readonly title: string | null
  /** What a chat shows, if the request may be approved there. */
  readonly chat: readonly ChatFact[] | null
  /** For reviewers of a held request: its operation (operation.ts); null where method and path show it. */
  readonly operation: string | null
  /** The conditions that held, with the values they saw. */
  readonly matched: readonly MatchedCondition[]
  readonly risk: (RiskScore & { readonly threshold: number; readonly signals: readonly RiskSignal[] }) | null
  /** Fields that could not be evaluated. */
  readonly unreadable: readonly string[]
}

/** The decision on a live request, fixed when it is made. */
export type Decision = Allowed | DecisionRecord<'Deny' | 'Hitl'>

/** The head alone does not decide: hold the body, then ask again. */
export interface NeedBody {
  readonly need: 'body'
  /** Names of the rules that wait for the body, in order. */
  readonly pending: readonly string[]
  /** Rule that decides if none of those matches; null for the default. */
  readonly otherwise: string | null
}
