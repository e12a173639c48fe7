export type Effect = 'Allow' | 'Deny' | 'Hitl'

/** What made the decision. `error`: evaluation failed, and unknown is Deny. */
export type DecisionSource =
  | 'rule'
  | 'default'
  | 'risk'
  | 'regardless-of-body'
  | 'global'
  | 'unassigned'
  | 'policy-missing'
  | 'error'

export interface MatchedCondition {
  readonly condition: string
  /** Redacted and cut to 64 characters. */
  readonly actual: unknown
}

export interface RiskSignal {
  readonly signal: string
  readonly points: number
  readonly detail?: string
}

/** The decision record: API, audit, log and `reason` (policy language, section "Decision record"). */
export interface Decision {
  readonly decision: Effect
  readonly source: DecisionSource
  readonly policy: string | null
  readonly policyVersion: string | null
  readonly rule: string | null
  readonly priority: number | null
  readonly phase: 'head' | 'body'
  /** For people who may see everything: reviewers, auditors, the log. */
  readonly reason: string
  /** For the agent: never actual values, never the rule list. */
  readonly publicReason: string
  readonly matched: readonly MatchedCondition[]
  readonly risk: { readonly score: number; readonly threshold: number; readonly signals: readonly RiskSignal[] } | null
  readonly shadow: readonly { readonly rule: string; readonly would: Effect; readonly policy?: string }[]
  /** Fields that could not be evaluated. */
  readonly unreadable: readonly string[]
  /** Verdicts of different reviewers that the deciding Hitl rule asks for. */
  readonly approvals: number
  /** Rules evaluated. */
  readonly evaluated: number
}

/** The head does not settle it: hold the body, then ask again. */
export interface NeedBody {
  readonly need: 'body'
  /** Names of the rules that wait for the body, in order. */
  readonly pending: readonly string[]
  /** Rule that decides if none of those matches; null for the default. */
  readonly otherwise: string | null
}
