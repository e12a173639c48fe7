import { formatRule } from '../language/format.ts'
import type { Condition, Effect, Node, Rule } from '../language/model.ts'
import type { Facts } from '../request/facts.ts'
import { and, False, not, or, True, type Truth, Unknown, Unreadable } from '../values/truth.ts'
import type { CompiledPolicy } from './compile.ts'
import type { CompiledNode, CompiledRule } from './rule.ts'

/** Which conditions can be answered. */
export type IsKnown = (condition: Condition) => boolean

/** What a policy makes of requests of which not everything is known. */
export interface MaskedOutcome {
  /** Rules that decide if what is not known is so, in order. */
  readonly pending: readonly Rule[]
  /** The rule that decides otherwise; null: the default. */
  readonly last: Rule | null
  /** Its effect, or that of the default. */
  readonly effect: Effect
  /** Every effect that is possible. */
  readonly effects: ReadonlySet<Effect>
}

/** Decides a request of which some fields are made up: conditions on those are unknown. */
export function decideMasked({ rules, policy }: CompiledPolicy, facts: Facts, isKnown: IsKnown): MaskedOutcome {
  const pending: Rule[] = []
  let last: Rule | null = null
  for (const rule of rules) {
    const value = askMasked(rule, facts, isKnown)
    if (value === False) continue
    if (value === True) {
      last = rule.rule
      break
    }
    pending.push(rule.rule)
  }
  const effect = last?.effect ?? policy.default
  return { pending, last, effect, effects: new Set([...pending.map(rule => rule.effect), effect]) }
}

/** Whether two policies certainly treat the request alike, although it is not known how. */
export function isAlike(one: MaskedOutcome, other: MaskedOutcome): boolean {
  return one.effect === other.effect && textOf(one) === textOf(other)
}

/** Rules without their names and places. */
const textOf = ({ pending }: MaskedOutcome): string =>
  JSON.stringify(pending.map(rule => ({ ...formatRule(rule), name: '', priority: 0 })))

function askMasked(rule: CompiledRule, facts: Facts, isKnown: IsKnown): Truth {
  let result: Truth = True
  for (const node of rule.nodes) {
    result = and(result, askNode(node, facts, isKnown))
    if (result === False) return False
  }
  return result === Unreadable ? rule.whenUnreadable : result
}

function askNode({ node, test, inner }: CompiledNode, facts: Facts, isKnown: IsKnown): Truth {
  if ('field' in node) return isKnown(node) ? test(facts) : Unknown
  const values = inner.map(child => askNode(child, facts, isKnown))
  return together(node, values)
}

function together(node: Exclude<Node, { readonly field: string }>, values: readonly Truth[]): Truth {
  if ('not' in node) return not(values[0] ?? Unknown)
  return 'all' in node ? values.reduce(and, True) : values.reduce(or, False)
}
