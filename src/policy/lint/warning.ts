import { innerNodes } from '../evaluation/rule.ts'
import type { Condition, Node, Rule, RuleWarning } from '../language/model.ts'

export type LintCode = RuleWarning | 'W_UNUSED_SILENCE'

/** Something in a policy that is allowed and probably not meant. */
export interface LintWarning {
  readonly code: LintCode
  /** Place in the document: `rules[0].conditions[1]`. */
  readonly path: string
  /** Null when it is about the policy as a whole. */
  readonly rule: string | null
  /** What is wrong, and what to write instead. */
  readonly message: string
}

/** A condition of a rule, and where it stands. */
export interface ConditionLeaf {
  readonly condition: Condition
  readonly path: string
  /** Whether an odd number of `not` surrounds it. */
  readonly inverted: boolean
}

/** The conditions of a rule at `path`, those in groups too. */
export function leavesOf(rule: Rule, path: string): ConditionLeaf[] {
  return rule.conditions.flatMap((node, index) => leavesOfNode(node, `${path}.conditions[${index}]`, false))
}

function leavesOfNode(node: Node, path: string, inverted: boolean): ConditionLeaf[] {
  if ('field' in node) return [{ condition: node, path, inverted }]
  if ('not' in node) return leavesOfNode(node.not, `${path}.not`, !inverted)
  const key = 'all' in node ? 'all' : 'any'
  return innerNodes(node).flatMap((inner, index) => leavesOfNode(inner, `${path}.${key}[${index}]`, inverted))
}
