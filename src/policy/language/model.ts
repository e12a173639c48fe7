/** The policy language as data: what a policy file, the API and the store hold (spec 2.2, and its superset). */
export interface Policy {
  readonly name: string
  readonly description: string
  readonly owner: string
  readonly default: Effect
  /** IANA name; the zone of `time.*`. */
  readonly timezone: string
  readonly onUnreadable: OnUnreadable
  /** Name of the policy beside which this one is evaluated without effect; null: this one decides. */
  readonly shadowOf: string | null
  readonly rules: readonly Rule[]
}

export type Effect = 'Allow' | 'Deny' | 'Hitl'

/** Terms for the review of requests that a Hitl rule holds. Only a Hitl rule may change them. */
export interface ReviewTerms {
  /** Verdicts of different reviewers that are needed. */
  readonly approvals: number
  /** How long the call itself waits for the outcome, seconds; null: HumanInTheLoop:WaitSeconds. */
  readonly waitSeconds: number | null
  /** The answer to a call that nobody decided in time: 202, or 503 so that SDKs try again. */
  readonly whenUndecided: 'accepted' | 'refused'
}

export const usualTerms: ReviewTerms = { approvals: 1, waitSeconds: null, whenUndecided: 'accepted' }

/** Handling of rules that cannot be evaluated. failSafe: Deny and Hitl apply, Allow does not. */
export type OnUnreadable = (typeof onUnreadables)[number]
export const onUnreadables = ['failSafe', 'match', 'noMatch'] as const

export interface Rule extends ReviewTerms {
  readonly name: string
  /** Higher wins. */
  readonly priority: number
  readonly effect: Effect
  /** A shadow rule is evaluated and reported, and never decides. */
  readonly mode: 'enforce' | 'shadow'
  /** What the rule does when it cannot be evaluated; null: as the policy says. */
  readonly onUnreadable: OnUnreadable | null
  /** Allow only: the risk threshold is not applied. */
  readonly riskExempt: boolean
  /** Allow only: name of the budget in which calls that the rule allows count, and of those of this policy only they; empty: none. */
  readonly budget: string
  /** Not of Deny: name of the credential that a request gets which the rule allows or holds; empty: as Upstreams has them. */
  readonly credential: string
  /** The author's words, shown to the agent too. */
  readonly reason: string
  /** Hitl only: what the request would do, for reviewers, with `{fields}` (title.ts); empty: none. */
  readonly title: string
  /** Hitl only: a reviewer may approve in a chat, where nobody sees more than `chatFields`. */
  readonly chatApproval: boolean
  /** Fields whose values a chat shows. */
  readonly chatFields: readonly string[]
  /** Warnings of `policy check` that do not apply. */
  readonly silence: readonly Silence[]
  /** All must hold; none: every request. */
  readonly conditions: readonly Node[]
}

/** Codes of warnings about one rule, in which the author can silence them. */
export const ruleWarnings = [
  'W_UNREACHABLE',
  'W_CONTRADICTION',
  'W_TIE_CONFLICT',
  'W_NEGATED_ALLOW',
  'W_ANY_ALLOW',
  'W_BODY_FIRST',
  'W_CATCH_ALL',
  'W_REGEX_LITERAL',
  'W_WITNESS',
  'W_SHADOW_OLD',
  'W_ANY_ORIGIN',
  'W_ONE_READING',
  'W_ONE_SPELLING',
  'W_MCP_HEADER',
  'W_MCP_SESSION',
  'W_MISSING_PASSES',
  'W_IMPOSSIBLE_VALUE',
  'W_PATTERN_TEXT',
  'W_TEXT_OF_OBJECT',
  'W_OPEN_END',
  'W_CHAT_BLIND',
  'W_UNKNOWN_BUDGET',
  'W_UNKNOWN_CREDENTIAL',
] as const

export type RuleWarning = (typeof ruleWarnings)[number]

/** A warning that the author of a rule has read and does not want to see again. */
export interface Silence {
  readonly code: RuleWarning
  /** Why the warning does not apply. */
  readonly reason: string
}

export type Node = Condition | Group
export type Group = { readonly all: readonly Node[] } | { readonly any: readonly Node[] } | { readonly not: Node }

export interface Condition {
  readonly field: string
  /** Canonical name. */
  readonly operator: string
  /** Always text, as on the wire; a list is JSON text. */
  readonly value: string
  /** Set when the author wrote a number or boolean: only that JSON type is equal to it. */
  readonly valueType: 'number' | 'boolean' | undefined
  readonly ignoreCase: boolean
  readonly quantifier: 'any' | 'all'
}

/** Sizes past which a policy is refused. */
export const limits = {
  rules: 20_000,
  conditionsPerRule: 32,
  depth: 8,
  list: 10_000,
  /** UTF-16 units of a pattern. */
  regex: 1_024,
  approvals: 10,
  chatFields: 8,
  /** HumanInTheLoop:TimeoutSeconds, where a configuration is known, is less. */
  waitSeconds: 2_592_000,
  /** UTF-16 units of the reason of a silenced warning. */
  silenceReason: 512,
} as const

export const effects: readonly Effect[] = ['Allow', 'Deny', 'Hitl']

const strictness: Readonly<Record<Effect, number>> = { Allow: 0, Hitl: 1, Deny: 2 }

/** Whether a rule applies that cannot be evaluated. */
export function appliesUnread(policy: Policy, rule: Rule): boolean {
  const chosen = rule.onUnreadable ?? policy.onUnreadable
  return chosen === 'match' || (chosen === 'failSafe' && rule.effect !== 'Allow')
}

export function stricter(left: Effect, right: Effect): Effect {
  return strictness[left] >= strictness[right] ? left : right
}

/** The order of evaluation: priority, then the stricter effect; ties keep the order of declaration. */
export function compareRules(left: Rule, right: Rule): number {
  return right.priority - left.priority || strictness[right.effect] - strictness[left.effect]
}
