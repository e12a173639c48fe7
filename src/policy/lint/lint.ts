import { rulesBefore } from '../evaluation/candidates.ts'
import { type CompiledPolicy, compilePolicySync } from '../evaluation/compile.ts'
import { askRule, type CompiledRule, fieldsOf } from '../evaluation/rule.ts'
import { keysOf } from '../evaluation/rule-keys.ts'
import type { Node, Policy, Rule } from '../language/model.ts'
import type { DescribedRequest } from '../request/describe.ts'
import { Facts } from '../request/facts.ts'
import { noRisk } from '../risk/risk.ts'
import { False, True } from '../values/truth.ts'
import { implies } from './implies.ts'
import { conditionWarnings, type LintWarning } from './lint-rule.ts'
import { witnessOf } from './witness.ts'

export type { LintWarning } from './lint-rule.ts'

export interface LintOptions {
  /** Milliseconds since the epoch. */
  readonly now?: number
  /** Since when the policy has been as it is, milliseconds since the epoch. */
  readonly unchangedSince?: number
}

const shadowDays = 30
const day = 86_400_000
/** Pairs of rules that are compared, so that a large policy is checked in seconds. */
const maxPairs = 50_000
const fewRules = 500

/** Reports what is valid but probably a mistake. Each warning is proved, or shown by a request. */
export function lintPolicy(policy: Policy, options: LintOptions = {}): readonly LintWarning[] {
  const linter = new Linter(policy)
  return [...policyWarnings(policy), ...linter.warnings(), ...shadowWarnings(policy, options)]
}

function policyWarnings(policy: Policy): LintWarning[] {
  if (policy.default !== 'Allow') return []
  const message = 'the default is Allow: requests that no rule matches pass'
  return [{ code: 'W_CATCH_ALL', path: 'default', rule: null, message }]
}

function shadowWarnings(policy: Policy, { now, unchangedSince }: LintOptions): LintWarning[] {
  if (now === undefined || unchangedSince === undefined || now - unchangedSince <= shadowDays * day) return []
  return policy.rules.flatMap((rule, index) => {
    if (rule.mode !== 'shadow') return []
    const message = `in shadow for more than ${shadowDays} days: enforce it or remove it`
    return [{ code: 'W_SHADOW_OLD' as const, path: `rules[${index}].mode`, rule: rule.name, message }]
  })
}

class Linter {
  readonly #compiled: CompiledPolicy
  readonly #places: ReadonlyMap<Rule, number>

  constructor(policy: Policy) {
    this.#compiled = compilePolicySync(policy)
    this.#places = new Map(policy.rules.map((rule, index) => [rule, index]))
  }

  warnings(): LintWarning[] {
    const { rules, shadowRules, scope } = this.#compiled
    const each = [...rules, ...shadowRules].flatMap(({ rule }) => conditionWarnings(rule, this.#path(rule), scope))
    return [...each, ...rules.flatMap((_, place) => this.#orderWarnings(place)), ...this.#ties(), ...this.#bodyFirst()]
  }

  #path(rule: Rule): string {
    return `rules[${this.#places.get(rule)}]`
  }

  #warn(code: LintWarning['code'], rule: Rule, message: string): LintWarning {
    return { code, path: this.#path(rule), rule: rule.name, message }
  }

  /** Warnings about a rule that follow from the rules before it. */
  #orderWarnings(place: number): LintWarning[] {
    const { rules } = this.#compiled
    const { rule } = rules[place]!
    if (rule.conditions.length === 0 && place < rules.length - 1) {
      return [this.#warn('W_CATCH_ALL', rule, 'matches every request: no rule after it decides')]
    }
    const later = rules[place]!
    const facts = this.#witness(later)
    const earlier = facts === undefined ? this.#allBefore(place) : this.#matchingBefore(place, facts)
    const covering = earlier.find(candidate => this.#covers(candidate, later))
    if (covering !== undefined) {
      const name = JSON.stringify(covering.rule.name)
      return [
        this.#warn(
          'W_UNREACHABLE',
          rule,
          `never decides: rule ${name} is evaluated first and matches whenever this one does`,
        ),
      ]
    }
    const [first] = facts === undefined ? [] : earlier
    if (first === undefined || first.effect === later.effect) return []
    const name = JSON.stringify(first.rule.name)
    return [this.#warn('W_WITNESS', rule, `rule ${name} decides a request made from the conditions of this one`)]
  }

  /** Facts for which a rule certainly holds. */
  #witness(rule: CompiledRule): Facts | undefined {
    const made = witnessOf(rule.rule.conditions)
    const facts = made && factsOf(made)
    return facts !== undefined && rule.tests.every(test => test(facts) === True) ? facts : undefined
  }

  /** Without a request to narrow them down, rules are compared in small policies only. */
  #allBefore(place: number): readonly CompiledRule[] {
    return place > fewRules ? [] : this.#compiled.rules.slice(0, place)
  }

  #matchingBefore(end: number, facts: Facts): readonly CompiledRule[] {
    const candidates = rulesBefore(this.#compiled, facts, this.#compiled.rules[end]!.rank - 1)
    return candidates.filter(rule => askRule(rule, facts) !== False)
  }

  /** Whether `earlier` matches in every case in which `later` does, also when that cannot be evaluated. */
  #covers(earlier: CompiledRule, later: CompiledRule): boolean {
    const { scope, policy } = this.#compiled
    const held = later.rule.conditions
    const implied = earlier.rule.conditions.every(wanted => held.some(given => implies(given, wanted, scope)))
    const safe = earlier.effect !== 'Allow' || policy.onUnreadable !== 'failSafe' || held.every(isAlwaysReadable)
    return implied && safe
  }

  /** Rules of one priority with different effects, for which some request meets both. */
  #ties(): LintWarning[] {
    const { rules } = this.#compiled
    const found: LintWarning[] = []
    let pairs = 0
    for (const [place, later] of rules.entries()) {
      for (let before = place - 1; before >= 0 && rules[before]!.rule.priority === later.rule.priority; before--) {
        const earlier = rules[before]!
        if (earlier.effect === later.effect) continue
        if (++pairs > maxPairs) return found
        if (!this.#overlap(earlier, later)) continue
        const name = JSON.stringify(earlier.rule.name)
        const message = `same priority as rule ${name}, different effect: ${earlier.effect} wins where both match`
        found.push(this.#warn('W_TIE_CONFLICT', later.rule, message))
        break
      }
    }
    return found
  }

  #overlap(left: CompiledRule, right: CompiledRule): boolean {
    const both = [...left.rule.conditions, ...right.rule.conditions]
    const made = witnessOf(both)
    if (made === undefined) return false
    const facts = factsOf(made)
    return [...left.tests, ...right.tests].every(test => test(facts) === True)
  }

  /** Rules on the body, ranked above rules for the same host that the head alone would settle. */
  #bodyFirst(): LintWarning[] {
    const waiting = new Map<string, Rule>()
    const found: LintWarning[] = []
    for (const { rule } of this.#compiled.rules) {
      const hosts = keysOf(rule.conditions).hosts ?? []
      if (readsBody(rule)) for (const host of hosts) waiting.has(host) || waiting.set(host, rule)
      else for (const host of hosts) found.push(...this.#heldBy(waiting, host, rule))
    }
    return found
  }

  #heldBy(waiting: Map<string, Rule>, host: string, settled: Rule): LintWarning[] {
    const rule = waiting.get(host)
    if (rule === undefined || settled.effect === 'Hitl') return []
    for (const [other, waits] of waiting) if (waits === rule) waiting.delete(other)
    const message = `reads the body before rule ${JSON.stringify(settled.name)}, which needs only the head: bodies are held`
    return [this.#warn('W_BODY_FIRST', rule, message)]
  }
}

function factsOf({ head, body }: DescribedRequest): Facts {
  const facts = new Facts(head, noRisk)
  return head.contentLength === 0 ? facts : facts.withBody(body, noRisk)
}

function readsBody(rule: Rule): boolean {
  return rule.conditions.flatMap(fieldsOf).some(field => field.kind.phase !== 'head')
}

/** Plain strings of the head are always there; only of the path there may be several readings. */
function isAlwaysReadable(node: Node): boolean {
  return fieldsOf(node).every(field => field.plain !== undefined && field.kind.ofPath !== true)
}
