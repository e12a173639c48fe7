import { rulesBefore } from './candidates.ts'
import type { CompiledPolicy } from './compile.ts'
import type { Decision, DecisionSource, Effect, MatchedCondition, RiskSignal } from './decision.ts'
import type { Facts } from './facts.ts'
import { matchedConditions, ruleReason, unreadableFields } from './reason.ts'
import { riskReason } from './risk.ts'
import { askRule, type CompiledRule } from './rule.ts'
import type { Rulebook } from './rulebook.ts'
import { True } from './truth.ts'
import { type Walk, walk } from './walk.ts'

const noShadow: Decision['shadow'] = []

/** What a decision was made of. */
export interface Grounds {
  readonly rulebook: Rulebook
  readonly facts: Facts
  readonly phase: 'head' | 'body'
  /** The walk that decided: of the guardrail or of the agent's policy. */
  readonly walk: Walk
  /** Rules evaluated in all. */
  readonly evaluated: number
}

/** A decision. Everything but the effect is worked out when somebody reads it: an allowed request pays for no text. */
export class Verdict implements Decision {
  readonly decision: Effect
  readonly source: DecisionSource
  readonly #grounds: Grounds
  #risk: NonNullable<Decision['risk']> | undefined

  constructor(decision: Effect, source: DecisionSource, grounds: Grounds) {
    this.decision = decision
    this.source = source
    this.#grounds = grounds
  }

  get phase(): 'head' | 'body' {
    return this.#grounds.phase
  }

  get policy(): string | null {
    return this.#policy?.name ?? this.#grounds.rulebook.policyName
  }

  get policyVersion(): string | null {
    return this.#policy?.version ?? null
  }

  get rule(): string | null {
    return this.#rule?.rule.name ?? null
  }

  get priority(): number | null {
    return this.#rule?.rule.priority ?? null
  }

  get approvals(): number {
    return this.decision === 'Hitl' ? (this.#rule?.rule.approvals ?? 1) : 1
  }

  get evaluated(): number {
    return this.#grounds.evaluated
  }

  get #policy(): CompiledPolicy | undefined {
    return this.#grounds.walk.policy
  }

  /** The one rule that decided; undefined when the default did, or every outcome was the same. */
  get #rule(): CompiledRule | undefined {
    return this.#grounds.walk.settled ? this.#grounds.walk.last : undefined
  }

  get reason(): string {
    const { facts, walk, rulebook } = this.#grounds
    if (this.source === 'risk') return riskReason(this.risk.score, this.risk.threshold, this.risk.signals)
    if (this.#rule !== undefined && this.#policy !== undefined) return ruleReason(this.#rule, this.#policy, facts)
    if (!walk.settled) return this.#regardlessReason()
    if (walk.source === 'unassigned') return `the agent has no policy: ${this.decision}`
    if (walk.source === 'policy-missing') return `policy ${JSON.stringify(rulebook.policyName)} not found`
    return `no rule of policy ${JSON.stringify(this.policy)} matched: default ${this.decision}`
  }

  #regardlessReason(): string {
    const { pending, last } = this.#grounds.walk
    const names = pending.map(rule => `rule ${JSON.stringify(rule.rule.name)}`)
    names.push(last === undefined ? 'the default' : `rule ${JSON.stringify(last.rule.name)}`)
    return `${this.decision} whatever the body holds: ${names.join(', ')}`
  }

  get publicReason(): string {
    const rule = this.#rule?.rule
    if (this.source === 'risk') return 'The risk of this request is above the threshold.'
    if (rule !== undefined) return rule.reason === '' ? `Rule "${rule.name}".` : `Rule "${rule.name}": ${rule.reason}`
    if (this.source === 'unassigned') return 'No policy is assigned to this agent.'
    if (this.source === 'policy-missing') return 'The policy of this agent was not found.'
    return 'No rule of the policy allows this request.'
  }

  get matched(): readonly MatchedCondition[] {
    if (this.#rule === undefined || this.#policy === undefined) return []
    return matchedConditions(this.#rule, this.#policy, this.#grounds.facts)
  }

  get risk(): NonNullable<Decision['risk']> {
    this.#risk ??= new Risk(this.#grounds)
    return this.#risk
  }

  get shadow(): Decision['shadow'] {
    const { facts, rulebook } = this.#grounds
    if (rulebook.shadows.length === 0 && (rulebook.policy?.shadowRules.length ?? 0) === 0) return noShadow
    return [...this.#shadowRules(), ...rulebook.shadows.flatMap(policy => shadowPolicy(policy, facts, this.decision))]
  }

  /** Shadow rules that hold and would have been asked before the rule that decided. */
  #shadowRules(): Decision['shadow'] {
    const { facts, rulebook } = this.#grounds
    const own = rulebook.policy
    if (own === undefined || own.shadowRules.length === 0) return []
    const decider = this.#policy === own ? this.#grounds.walk.last : undefined
    const before = decider?.rank ?? Number.POSITIVE_INFINITY
    const holding = own.shadowRules.filter(rule => rule.rank < before && askRule(rule, facts) === True)
    return holding.map(rule => ({ rule: rule.rule.name, would: rule.effect }))
  }

  get unreadable(): readonly string[] {
    const { facts, walk } = this.#grounds
    const { policy } = walk
    if (policy === undefined) return []
    const asked = rulesBefore(policy, facts, walk.last?.rank ?? Number.POSITIVE_INFINITY)
    const fields = asked.flatMap(rule => unreadableFields(rule, policy, facts).map(({ field }) => field))
    return [...new Set(fields)]
  }

  /** The plain record, for logs and answers. */
  toJSON(): Decision {
    const { decision, source, policy, policyVersion, rule, priority, phase } = this
    const { reason, publicReason, matched, risk, shadow, unreadable, approvals, evaluated } = this
    return {
      ...{ decision, source, policy, policyVersion, rule, priority, phase },
      ...{ reason, publicReason, matched, risk, shadow, unreadable, approvals, evaluated },
    }
  }
}

/** The score, and on demand what it is made of: the log asks for the score alone. */
class Risk {
  readonly score: number
  readonly threshold: number
  readonly #facts: Facts

  constructor({ facts, rulebook }: Grounds) {
    this.score = facts.risk.interval(facts).low
    this.threshold = rulebook.risk.threshold
    this.#facts = facts
  }

  get signals(): readonly RiskSignal[] {
    return this.#facts.risk.signals(this.#facts)
  }

  toJSON(): NonNullable<Decision['risk']> {
    return { score: this.score, threshold: this.threshold, signals: this.signals }
  }
}

/** What a whole policy in shadow would have said, when that is certain and different. */
function shadowPolicy(policy: CompiledPolicy, facts: Facts, decision: Effect): Decision['shadow'] {
  const found = facts.body === undefined ? walk(policy, facts) : walk(policy, facts).settle(facts)
  if (!found.settled || found.effect === decision) return []
  return [{ rule: found.last?.rule.name ?? '(default)', would: found.effect, policy: policy.name }]
}

/** The decision when evaluating failed: unknown is Deny. */
export function failedDecision(rulebook: Rulebook, phase: 'head' | 'body', error: unknown): Decision {
  return {
    decision: 'Deny',
    source: 'error',
    policy: rulebook.policyName,
    policyVersion: rulebook.policy?.version ?? null,
    rule: null,
    priority: null,
    phase,
    reason: `evaluation failed: ${error instanceof Error ? error.message : String(error)}`,
    publicReason: 'The decision could not be made.',
    matched: [],
    risk: null,
    shadow: [],
    unreadable: [],
    approvals: 1,
    evaluated: 0,
  }
}
