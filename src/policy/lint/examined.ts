import { type CompiledPolicy, compilePolicySync } from '../evaluation/compile.ts'
import type { CompiledRule } from '../evaluation/rule.ts'
import { type RuleWalk, walk } from '../evaluation/walk.ts'
import { compileCondition, type Scope } from '../language/condition.ts'
import type { Condition, Policy, Rule, RuleWarning } from '../language/model.ts'
import type { DescribedRequest } from '../request/describe.ts'
import { Facts } from '../request/facts.ts'
import type { RequestHead } from '../request/input.ts'
import { noRisk } from '../risk/risk.ts'
import { True } from '../values/truth.ts'
import type { LintWarning } from './warning.ts'

/** A warning that was not looked for in all rules, because that takes too long. */
export interface Unfinished {
  readonly code: RuleWarning
  /** How many rules were left out. */
  readonly rules: number
}

/** A policy that is examined: compiled, and its rules with their places in the document. */
export class Examined {
  readonly compiled: CompiledPolicy
  readonly unfinished: Unfinished[] = []
  readonly #places: ReadonlyMap<Rule, number>

  constructor(policy: Policy) {
    this.compiled = compilePolicySync(policy)
    this.#places = new Map(policy.rules.map((rule, index) => [rule, index]))
  }

  pathOf(rule: Rule): string {
    return `rules[${this.#places.get(rule)}]`
  }

  warn(code: RuleWarning, rule: Rule, message: string): LintWarning {
    return { code, path: this.pathOf(rule), rule: rule.name, message }
  }

  /** Notes that from the rule at `place` on nobody looks for these. */
  leaveOut(place: number, ...codes: readonly RuleWarning[]): void {
    for (const code of codes) this.unfinished.push({ code, rules: this.compiled.rules.length - place })
  }

  /** What the policy makes of a whole request. */
  walk(facts: Facts): RuleWalk {
    return walk(this.compiled, facts)
  }
}

/** A whole request as rules read it, without risk. */
export function factsOf({ head, body }: DescribedRequest): Facts {
  const facts = new Facts(head, noRisk)
  return head.contentLength === 0 ? facts : facts.withBody(body, noRisk)
}

/** Whether all conditions of a rule certainly hold. */
export function holds(rule: CompiledRule, facts: Facts): boolean {
  return rule.tests.every(test => test(facts) === True)
}

/** Whether a condition on a plain string of the head holds for a value of it. */
export function holdsFor(condition: Condition, scope: Scope, value: string): boolean {
  const test = compileCondition(condition, scope)
  const key = condition.field.slice('input.'.length)
  // The condition reads one plain field, and nothing else of a request.
  return test(new Facts({ [key]: value, contentLength: 0, rawHeaders: [] } as unknown as RequestHead, noRisk)) === True
}
