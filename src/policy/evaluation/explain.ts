import {
  type DescribedRequest,
  type DescriptionProblem,
  type RequestDescription,
  requestFromDescription,
} from '../request/describe.ts'
import { Facts } from '../request/facts.ts'
import { RiskAssessment } from '../risk/risk.ts'
import { EvaluationTurns, once, share } from '../turns/evaluation.ts'
import { False, True, type Truth, Unknown } from '../values/truth.ts'
import type { CompiledPolicy } from './compile.ts'
import { evaluateBody, evaluateHead, PendingDecision, withBody } from './decide.ts'
import type { DecisionRecord, NeedBody } from './decision.ts'
import { actualOf, describeNode } from './reason.ts'
import { recordOf } from './record.ts'
import { askRule, type CompiledNode, type CompiledRule } from './rule.ts'
import type { Rulebook } from './rulebook.ts'

export type TruthName = 'true' | 'false' | 'unknown' | 'unreadable'

/** One rule, its result for a request, and the cause. */
export type RuleExplanation = ReturnType<typeof explainRule>

export interface NodeExplanation {
  readonly condition: string
  readonly value: TruthName
  /** Redacted and cut; only for conditions. */
  readonly actual?: unknown
  readonly inner?: readonly NodeExplanation[]
}

/** The record, or that the body is needed, with every rule of the agent's policy in the order of evaluation. */
export interface Explanation {
  readonly result:
    | DecisionRecord
    | ({ readonly decision: null; readonly need: 'body' } & Pick<NeedBody, 'pending' | 'otherwise'>)
  /** Every way in which servers read the path, the literal one first; absent when there is only one. */
  readonly readings?: readonly string[]
  readonly rules: readonly RuleExplanation[]
}

/**
 * Decides a described request and says how every rule came out.
 *
 * @param now taken when the description has no time, milliseconds since the epoch
 */
export function explainDescription(
  rulebook: Rulebook,
  given: RequestDescription,
  now: number,
): Explanation | DescriptionProblem {
  const open = openExplanation(rulebook, given, now)
  return 'problem' in open ? open : open.takeAll()
}

/** The same in turns of the event loop. */
export function openExplanation(
  rulebook: Rulebook,
  given: RequestDescription,
  now: number,
): OpenExplanation | DescriptionProblem {
  const described = requestFromDescription(given, now)
  if ('problem' in described) return described
  return new OpenExplanation(whatIf(rulebook, given), described, given.phase ?? 'body')
}

/** The rulebook with the score and threshold that a description asks for. */
function whatIf(rulebook: Rulebook, given: RequestDescription): Rulebook {
  const score = given.risk ?? given.request.risk
  const threshold = given.riskThreshold ?? rulebook.risk.threshold
  return { ...rulebook, risk: { ...rulebook.risk, threshold, ...(score === undefined ? {} : { score }) } }
}

/** An explanation that is made in turns, each of which takes some milliseconds. */
export class OpenExplanation {
  readonly #policy: CompiledPolicy | undefined
  readonly #readings: readonly string[] | undefined
  readonly #facts: Facts
  readonly #result: () => DecisionRecord | NeedBody
  readonly #turns = new EvaluationTurns()

  constructor(rulebook: Rulebook, { head, body }: DescribedRequest, phase: 'head' | 'body') {
    this.#policy = rulebook.policy
    this.#readings = head.readings
    const found = evaluateHead(rulebook, head)
    if (found instanceof PendingDecision && phase === 'body') {
      const evaluation = withBody(found.evaluation, body)
      this.#facts = evaluation.facts
      const decide = () => recordOf(evaluateBody(evaluation))
      this.#result = decide
      return
    }
    const result = found instanceof PendingDecision ? found : recordOf(found)
    const decided = () => result
    this.#result = decided
    const risk = new RiskAssessment(rulebook.risk)
    const known = new Facts(head, risk)
    // The rules are explained with the body, although the decision needs none of it.
    const hasBody = phase === 'body' && head.contentLength !== 0
    this.#facts = hasBody ? known.withBody(body, risk) : known
  }

  /** Steps that the last turn took. */
  get steps(): number {
    return this.#turns.steps
  }

  /** Undefined when another turn is needed. */
  takeTurn(): Explanation | undefined {
    return this.#turns.take(() => this.takeAll())
  }

  takeAll(): Explanation {
    const explained = {
      ...(this.#readings === undefined ? {} : { readings: this.#readings }),
      rules: this.#policy === undefined ? [] : explainRules(this.#policy, this.#facts),
    }
    const result = this.#result()
    if (!('need' in result)) return { result, ...explained }
    const { need, pending, otherwise } = result
    return { result: { decision: null, need, pending, otherwise }, ...explained }
  }
}

function explainRules(policy: CompiledPolicy, facts: Facts): RuleExplanation[] {
  const all = [...policy.rules, ...policy.shadowRules].sort((left, right) => left.rank - right.rank)
  return all.map(compiled => once(compiled.nodes, () => explainRule(compiled, policy, facts)))
}

/** Steps that explaining a rule takes beside its conditions. */
const stepsPerRule = 512

function explainRule(compiled: CompiledRule, policy: CompiledPolicy, facts: Facts) {
  const { rule } = compiled
  share(stepsPerRule)
  const conditions = compiled.nodes.map(node => explainNode(node, policy, facts))
  return {
    rule: rule.name,
    effect: rule.effect,
    priority: rule.priority,
    mode: rule.mode,
    /** unknown: waits for the body. */
    value: together(conditions.map(condition => condition.value)),
    /** Whether the rule counts as matching, `onUnreadable` taken into account. */
    matches: askRule(compiled, facts) === True,
    conditions,
  }
}

function explainNode({ node, test, inner }: CompiledNode, policy: CompiledPolicy, facts: Facts): NodeExplanation {
  const explained = { condition: describeNode(node), value: nameOf(test(facts)) }
  if ('field' in node) return { ...explained, actual: actualOf(node, policy, facts) }
  return { ...explained, inner: inner.map(child => explainNode(child, policy, facts)) }
}

function nameOf(value: Truth): TruthName {
  if (value === True) return 'true'
  if (value === False) return 'false'
  return value === Unknown ? 'unknown' : 'unreadable'
}

const weakest: readonly TruthName[] = ['false', 'unknown', 'unreadable']

/** Conditions of a rule hold together: the first of false, unknown, unreadable that occurs. */
function together(values: readonly TruthName[]): TruthName {
  return weakest.find(name => values.includes(name)) ?? 'true'
}
