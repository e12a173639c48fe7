import { type Effect, type ReviewTerms, type Rule, usualTerms } from '../language/model.ts'
import type { Facts } from '../request/facts.ts'
import { once } from '../turns/evaluation.ts'
import { True } from '../values/truth.ts'
import { chatOf } from './chat.ts'
import type { Allowed, Decision, DecisionRecord, DecisionSource, MatchedCondition, ShadowOutcome } from './decision.ts'
import { operationOf } from './operation.ts'
import { matchedConditions, riskReason, ruleReason, unreadableFields } from './reason.ts'
import { askRule, type CompiledRule, type MissingSetting } from './rule.ts'
import type { Rulebook } from './rulebook.ts'
import { titleText } from './title.ts'
import { type RuleWalk, rulesBefore, walk } from './walk.ts'

/** The result of an evaluation. It refers to the request, so it must not outlive the decision. */
export interface DecisionOutcome {
  readonly effect: Effect
  readonly source: DecisionSource
  readonly phase: 'head' | 'body'
  readonly rulebook: Rulebook
  readonly facts: Facts
  /** The walk that decided: of the guardrail or of the agent's policy. */
  readonly walk: RuleWalk
  readonly ofAgent: RuleWalk
  /** Rules evaluated in all. */
  readonly evaluated: number
  /** How the head of an MCP request differs from its body. */
  readonly differs?: string
}

/** Fixes a decision on live traffic. An allowed request pays for no text. */
export function decisionOf(outcome: DecisionOutcome): Decision {
  if (outcome.effect === 'Allow') return allowed(outcome)
  // A person decides on all that the risk is made of.
  if (outcome.effect === 'Hitl') outcome.facts.risk.interval(outcome.facts)
  return recordDecision(outcome, outcome.effect)
}

/** The whole record of a decision, of an Allow too, with the risk worked out to the end. */
export function recordOf(outcome: DecisionOutcome): DecisionRecord {
  outcome.facts.risk.interval(outcome.facts)
  return recordDecision(outcome, outcome.effect)
}

/** The score; when more was not asked, since it could not have changed the outcome, the least it can be. */
function scoreOf({ facts }: DecisionOutcome): { readonly score: number; readonly atLeast?: true } {
  const { low, high } = facts.risk.known(facts)
  return high > low ? { score: low, atLeast: true } : { score: low }
}

function allowed(outcome: DecisionOutcome): Allowed {
  const { source, phase, evaluated } = outcome
  const rule = decidingRule(outcome)?.rule
  return {
    decision: 'Allow',
    source,
    policy: policyName(outcome),
    rule: rule?.name ?? null,
    budget: rule?.budget || null,
    credential: credentialOf(outcome),
    phase,
    evaluated,
    risk: riskOfAllowed(outcome),
    shadow: shadowOutcomes(outcome),
  }
}

/** A body that was read is searched for secrets, on which the trust of the agent depends. */
function riskOfAllowed(outcome: DecisionOutcome): Allowed['risk'] {
  const { phase, facts, rulebook } = outcome
  if (phase === 'body') return { ...scoreOf(outcome), signals: facts.risk.signals(facts) }
  return rulebook.scoresAllowed === false ? null : scoreOf(outcome)
}

function recordDecision<E extends Effect>(outcome: DecisionOutcome, effect: E): DecisionRecord<E> {
  const { source, phase, rulebook, facts, walk, evaluated } = outcome
  const { policy } = walk
  const rule = decidingRule(outcome)
  const matched = rule === undefined || policy === undefined ? [] : matchedConditions(rule, policy, facts)
  const held = effect === 'Hitl' ? rule : undefined
  const risk = {
    ...scoreOf(outcome),
    threshold: rulebook.risk.threshold,
    signals: facts.risk.signals(facts),
  }
  return {
    decision: effect,
    source,
    policy: policyName(outcome),
    policyVersion: policy?.version ?? null,
    rule: rule?.rule.name ?? null,
    budget: (effect === 'Allow' && rule?.rule.budget) || null,
    credential: credentialOf(outcome),
    priority: rule?.rule.priority ?? null,
    phase,
    reason: (source === 'risk' ? riskReason(risk) : reasonOf(outcome, matched)) + approvalsReason(outcome, held),
    publicReason: publicReasonOf(outcome, rule),
    ruleReason: rule?.rule.reason || null,
    title: held?.title === undefined || policy === undefined ? null : titleText(held.title, facts, policy.scope.zone),
    chat: effect === 'Hitl' ? chatOf(outcome, held?.chatFields) : null,
    operation: effect === 'Hitl' ? operationOf(facts) : null,
    matched,
    risk,
    shadow: shadowOutcomes(outcome),
    unreadable: unreadableNames(outcome),
    ...termsOf(outcome, held),
    evaluated,
  }
}

/** The terms of the rule that holds the request; a guardrail cannot lower the approvals that the agent's policy asks for. */
function termsOf(outcome: DecisionOutcome, held: CompiledRule | undefined): ReviewTerms {
  const { approvals, waitSeconds, whenUndecided } = held?.rule ?? usualTerms
  return { approvals: Math.max(approvals, approvalsOfAgent(outcome)), waitSeconds, whenUndecided }
}

function approvalsOfAgent({ effect, ofAgent }: DecisionOutcome): number {
  return effect === 'Hitl' && ofAgent.last !== undefined ? ofAgent.last.rule.approvals : usualTerms.approvals
}

function policyName({ walk, rulebook }: DecisionOutcome): string | null {
  return walk.policy?.name ?? rulebook.policyName
}

/** The one rule that decided; undefined when the default did, or every outcome was the same. */
function decidingRule({ walk, differs }: DecisionOutcome): CompiledRule | undefined {
  return walk.isDecided && differs === undefined ? walk.last : undefined
}

/** A guardrail that holds the request does not take the choice of the agent's policy away. */
function credentialOf({ effect, ofAgent }: DecisionOutcome): string | null {
  return (effect !== 'Deny' && ofAgent.isDecided && ofAgent.last?.rule.credential) || null
}

function reasonOf(outcome: DecisionOutcome, matched: readonly MatchedCondition[]): string {
  const { effect, facts, walk, rulebook, differs } = outcome
  if (differs !== undefined) return differs
  const rule = decidingRule(outcome)
  if (rule !== undefined && walk.policy !== undefined) {
    if (rule.missing !== undefined) return missingReason(rule.rule, rule.missing)
    return ruleReason(rule.rule, matched, unreadableFields(rule, walk.policy, facts))
  }
  if (!walk.isDecided) return regardlessReason(effect, walk)
  if (walk.source === 'unassigned') return `the agent has no policy: ${effect}`
  if (walk.source === 'policy-missing') return `policy ${JSON.stringify(rulebook.policyName)} not found`
  return `no rule of policy ${JSON.stringify(policyName(outcome))} matched: default ${effect}`
}

const missingReason = (rule: Rule, { member, name, list }: MissingSetting): string =>
  `rule ${JSON.stringify(rule.name)} names the ${member} ${name}, which is not in ${list}`

/** Where the number of approvals comes from, when another rule than the one that decides asks for it. */
function approvalsReason(outcome: DecisionOutcome, held: CompiledRule | undefined): string {
  const { ofAgent } = outcome
  const count = approvalsOfAgent(outcome)
  if (ofAgent.last === held || count <= (held?.rule ?? usualTerms).approvals) return ''
  return `; rule ${JSON.stringify(ofAgent.last?.rule.name)} of policy ${JSON.stringify(ofAgent.policy?.name)} needs ${count} approvals`
}

function regardlessReason(effect: Effect, { pending, last }: RuleWalk): string {
  const names = pending.map(rule => `rule ${JSON.stringify(rule.rule.name)}`)
  names.push(last === undefined ? 'the default' : `rule ${JSON.stringify(last.rule.name)}`)
  return `${effect} for any body: ${names.join(', ')}`
}

function publicReasonOf({ source, differs }: DecisionOutcome, compiled: CompiledRule | undefined): string {
  if (differs !== undefined) return differs
  const rule = compiled?.rule
  if (source === 'risk') return 'The risk of this request is above the threshold.'
  if (compiled?.missing !== undefined) return `Rule "${rule?.name}": what it needs is not there. Tell the operator.`
  if (rule !== undefined) return rule.reason === '' ? `Rule "${rule.name}".` : `Rule "${rule.name}": ${rule.reason}`
  if (source === 'unassigned') return 'No policy is assigned to this agent.'
  if (source === 'policy-missing') return 'The policy of this agent was not found.'
  return 'No rule of the policy allows this request.'
}

function unreadableNames({ facts, walk }: DecisionOutcome): readonly string[] {
  const { policy } = walk
  if (policy === undefined) return []
  const names = new Set<string>()
  for (const rule of rulesBefore(policy, facts, walk.last?.rank ?? Number.POSITIVE_INFINITY)) {
    for (const { field } of unreadableFields(rule, policy, facts)) names.add(field)
  }
  return [...names]
}

const noShadow: readonly ShadowOutcome[] = []

function shadowOutcomes(outcome: DecisionOutcome): readonly ShadowOutcome[] {
  const { rulebook, facts, effect } = outcome
  if (rulebook.shadows.length === 0 && (rulebook.policy?.shadowRules.length ?? 0) === 0) return noShadow
  return [
    ...shadowRules(outcome),
    ...rulebook.shadows.flatMap(policy => once(policy, () => shadowPolicy(policy, facts, effect))),
  ]
}

/** Shadow rules that hold and would have been asked before the rule that decided. */
function shadowRules({ rulebook, facts, walk }: DecisionOutcome): readonly ShadowOutcome[] {
  const ofAgent = rulebook.policy
  if (ofAgent === undefined || ofAgent.shadowRules.length === 0) return noShadow
  const decider = walk.policy === ofAgent ? walk.last : undefined
  const before = decider?.rank ?? Number.POSITIVE_INFINITY
  const holding = ofAgent.shadowRules.filter(rule => rule.rank < before && askRule(rule, facts) === True)
  return holding.map(rule => ({ rule: rule.rule.name, would: rule.effect }))
}

/** The outcome of a shadow policy, if it is certain and different. */
function shadowPolicy(policy: NonNullable<Rulebook['policy']>, facts: Facts, effect: Effect): ShadowOutcome[] {
  const found = facts.body === undefined ? walk(policy, facts) : walk(policy, facts).withBody(facts)
  if (!found.isDecided || found.effect === effect) return []
  return [{ rule: found.last?.rule.name ?? '(default)', would: found.effect, policy: policy.name }]
}

/** The decision on a call that the policy lets pass, and that is held nevertheless. */
export function heldDecision(
  decision: Decision,
  source: 'budget',
  reasons: Pick<DecisionRecord, 'reason' | 'publicReason'>,
): DecisionRecord<'Hitl'> {
  if (decision.decision !== 'Allow') return { ...decision, decision: 'Hitl', source, ...reasons }
  const { policy, rule, credential, phase, evaluated, shadow } = decision
  const made = { policy, rule, phase, evaluated, shadow }
  return { decision: 'Hitl', source, ...made, ...reasons, ...unruled, credential }
}

/** Members of a decision that no rule has made. */
const unruled = {
  ...{ budget: null, credential: null, policyVersion: null, priority: null, matched: [], risk: null, unreadable: [] },
  ...{ ruleReason: null, title: null, chat: null, operation: null },
  ...usualTerms,
}

/**
 * The decision when evaluating failed: unknown is Deny. The error is named by its class, since its message may quote
 * the request.
 */
export function failedDecision(rulebook: Rulebook, phase: 'head' | 'body', error: unknown): DecisionRecord<'Deny'> {
  return {
    decision: 'Deny',
    source: 'error',
    policy: rulebook.policyName,
    rule: null,
    phase,
    reason: `evaluation failed: ${error instanceof Error ? error.name : typeof error}`,
    publicReason: 'The decision could not be made.',
    shadow: [],
    evaluated: 0,
    ...unruled,
    policyVersion: rulebook.policy?.version ?? null,
  }
}
