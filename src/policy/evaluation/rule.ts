import { compileChatFields } from '../language/chat.ts'
import { compileCondition, fieldOf, type Scope, type Test } from '../language/condition.ts'
import type { Field } from '../language/fields/fields.ts'
import { appliesUnread, type Condition, type Effect, type Node, type Policy, type Rule } from '../language/model.ts'
import type { LanguageOptions } from '../language/parse.ts'
import { compileTitle, type Title } from '../language/title.ts'
import type { Facts } from '../request/facts.ts'
import { and, False, not, or, True, type Truth, Unreadable } from '../values/truth.ts'

/** A rule ready to be asked. */
export interface CompiledRule {
  readonly rule: Rule
  /** Deny for a rule that names a budget or a credential which is not there. */
  readonly effect: Effect
  readonly missing: MissingSetting | undefined
  /** Place in the order in which rules are asked, shadow rules included. */
  readonly rank: number
  /** Conditions on the head first; all must hold. */
  readonly tests: readonly Test[]
  /** What the rule does when it cannot be evaluated. */
  readonly whenUnreadable: Truth
  /** Undefined when the rule has none. */
  readonly title: Title | undefined
  /** Undefined when nobody may approve in a chat. */
  readonly chatFields: readonly Field[] | undefined
  /** The conditions as written, for explanations. */
  readonly nodes: readonly CompiledNode[]
}

/** A condition or group with its test. */
export interface CompiledNode {
  readonly node: Node
  readonly test: Test
  readonly inner: readonly CompiledNode[]
}

interface RuleContext {
  readonly policy: Policy
  readonly scope: Scope
  readonly rank: number
  readonly options: NamedSettings
}

export function compileRule(rule: Rule, { policy, scope, rank, options }: RuleContext): CompiledRule {
  const nodes = rule.conditions.map(node => compileNode(node, scope))
  const priced = nodes.map(node => ({ node, cost: costOf(node.node) }))
  const tests = priced.sort((left, right) => left.cost - right.cost).map(({ node }) => node.test)
  const whenUnreadable = appliesUnread(policy, rule) ? True : False
  const title = compileTitle(rule.title, scope)
  const chatFields = rule.chatApproval ? compileChatFields(rule.chatFields, scope) : undefined
  const missing = missingSetting(rule, options)
  const effect = missing === undefined ? rule.effect : 'Deny'
  return { rule, effect, missing, rank, tests, whenUnreadable, title, chatFields, nodes }
}

/** Names that rules may use; an absent set: any. */
export type NamedSettings = Pick<LanguageOptions, 'budgets' | 'credentials'>

/** What a rule names and the settings do not have. */
export interface MissingSetting {
  readonly member: 'budget' | 'credential'
  readonly name: string
  readonly list: 'Budgets' | 'Credentials'
}

export function missingSetting(
  { budget, credential }: Rule,
  { budgets, credentials }: NamedSettings,
): MissingSetting | undefined {
  if (budget !== '' && budgets?.has(budget) === false) return { member: 'budget', name: budget, list: 'Budgets' }
  if (credential !== '' && credentials?.has(credential) === false) {
    return { member: 'credential', name: credential, list: 'Credentials' }
  }
  return undefined
}

/** The value of a rule: its conditions together, and what `onUnreadable` makes of an unreadable one. */
export function askRule(rule: CompiledRule, facts: Facts): Truth {
  const { tests } = rule
  let result: Truth = True
  for (let index = 0; index < tests.length; index++) {
    const value = tests[index]!(facts)
    if (value === False) return False
    if (value !== True) result = and(result, value)
  }
  return result === Unreadable ? rule.whenUnreadable : result
}

/** The policy was checked before, so that nothing can be wrong here. */
function compileNode(node: Node, scope: Scope): CompiledNode {
  const inner = innerNodes(node).map(child => compileNode(child, scope))
  return { node, inner, test: testOf(node, inner, scope) }
}

export function innerNodes(node: Node): readonly Node[] {
  if ('all' in node) return node.all
  if ('any' in node) return node.any
  return 'not' in node ? [node.not] : []
}

function testOf(node: Node, inner: readonly CompiledNode[], scope: Scope): Test {
  const tests = inner.map(child => child.test)
  if ('all' in node) return combined(tests, and, False)
  if ('any' in node) return combined(tests, or, True)
  if ('not' in node) return facts => not(tests[0]!(facts))
  return compileCondition(node, scope)
}

type Fold = (left: Truth, right: Truth) => Truth

/** Combines the tests from the first on, until the value that decides the group. */
function combined(tests: readonly Test[], fold: Fold, decisive: Truth): Test {
  return facts => {
    let result = tests[0]!(facts)
    for (let index = 1; index < tests.length && result !== decisive; index++)
      result = fold(result, tests[index]!(facts))
    return result
  }
}

/** Cheap and known tests first; the result of a rule does not depend on the order. */
function costOf(node: Node): number {
  if ('not' in node) return costOf(node.not)
  if ('field' in node) return conditionCost(node)
  const nodes = 'all' in node ? node.all : node.any
  return nodes.reduce((cost, inner) => Math.max(cost, costOf(inner)), 1) + 1
}

const phaseCost = { head: 0, risk: 100, body: 200 }
const slowOperators = ['matches', 'notMatches', 'like', 'notLike', 'detects', 'ipIn', 'notIpIn']

function conditionCost(condition: Condition): number {
  const field = fieldOf(condition)
  const reading = field.plain === undefined ? 4 : 0
  return phaseCost[field.kind.phase] + reading + (slowOperators.includes(condition.operator) ? 10 : 0)
}

/** Every field that a node reads. */
export function fieldsOf(node: Node): readonly Field[] {
  if ('not' in node) return fieldsOf(node.not)
  if ('field' in node) return [fieldOf(node)]
  return ('all' in node ? node.all : node.any).flatMap(fieldsOf)
}
