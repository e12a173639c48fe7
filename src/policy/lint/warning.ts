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
  /** Conditions and groups that hold whenever this one counts: of the rule, and of each `all` around it. */
  readonly beside: readonly Node[]
}

/** The conditions of a rule at `path`, those in groups too. */
export function leavesOf(rule: Rule, path: string): ConditionLeaf[] {
  const around = { inverted: false, beside: rule.conditions }
  return rule.conditions.flatMap((node, index) => leavesOfNode(node, `${path}.conditions[${index}]`, around))
}

function leavesOfNode(
  node: Node,
  path: string,
  { inverted, beside }: Pick<ConditionLeaf, 'inverted' | 'beside'>,
): ConditionLeaf[] {
  if ('field' in node) return [{ condition: node, path, inverted, beside }]
  if ('not' in node) return leavesOfNode(node.not, `${path}.not`, { inverted: !inverted, beside })
  const key = 'all' in node ? 'all' : 'any'
  const nodes = innerNodes(node)
  // Of an `all` under `not`, one that fails is enough.
  const around = { inverted, beside: key === 'all' && !inverted ? [...beside, ...nodes] : beside }
  return nodes.flatMap((inner, index) => leavesOfNode(inner, `${path}.${key}[${index}]`, around))
}
