import { fieldOf, operatorOf, type Scope } from '../language/condition.ts'
import type { Field } from '../language/fields/fields.ts'
import type { Condition, Policy, Rule, RuleWarning } from '../language/model.ts'
import { isNegation, type Operator } from '../language/operators/operators.ts'
import { holdsFor } from './examined.ts'
import { impossibleValue } from './impossible.ts'
import { openEnd } from './open-end.ts'
import { type ConditionLeaf, type LintWarning, leavesOf } from './warning.ts'

interface Surroundings {
  readonly scope: Scope
  /** Fields below which the policy names members. */
  readonly objects: ReadonlySet<string>
}

/** Warnings about the value that a condition compares with. */
export function valueWarnings(rule: Rule, path: string, surroundings: Surroundings): LintWarning[] {
  return leavesOf(rule, path).flatMap(leaf => {
    const found = firstFault(rule, leaf, surroundings)
    return found === undefined ? [] : [{ ...found, path: leaf.path, rule: rule.name }]
  })
}

type Fault = { readonly code: RuleWarning; readonly message: string } | undefined

/** One condition has one warning: where a value is impossible, its pattern does not matter. */
function firstFault(rule: Rule, { condition, inverted }: ConditionLeaf, { scope, objects }: Surroundings): Fault {
  const operator = operatorOf(condition)
  const field = fieldOf(condition)
  const isNegated = isNegation(operator, condition.value) !== inverted
  const always = isNegated ? 'the condition holds for every request' : 'the condition never holds'
  const impossible = impossibleValue(condition, field, operator)
  if (impossible !== undefined) return { code: 'W_IMPOSSIBLE_VALUE', message: `${impossible}: ${always}` }
  const pattern = patternIn(condition, operator)
  if (pattern !== undefined) return { code: 'W_PATTERN_TEXT', message: pattern }
  if (isTextOfObject(field, operator, objects)) {
    const instead = field.kind.phase === 'body' && field.text.startsWith('input.') ? 'input.bodyText or ' : ''
    const message = `${field.text} is an object, in which ${operator.name} cannot search: use ${instead}one of its members`
    return { code: 'W_TEXT_OF_OBJECT', message }
  }
  if (rule.effect !== 'Allow' || isNegated) return undefined
  const open = openEnd(condition, operator, value => holdsFor(condition, scope, value))
  return open === undefined ? undefined : { code: 'W_OPEN_END', message: open }
}

/** Fields whose values have no `*` and no braces, and the operator that reads them as a pattern. */
const patternOperators: Readonly<Record<string, string>> = {
  'input.path': 'pathMatches',
  'input.rawPath': 'like',
  'input.url': 'like',
  'input.host': 'hostMatches',
  'input.origin': 'hostMatches on input.host',
  'mcp.method': 'like',
  'mcp.tool': 'like',
  'mcp.prompt': 'like',
  'mcp.resource': 'like',
  'llm.model': 'like',
  'graphql.name': 'like',
  'graphql.fields': 'like',
}

const textOperators = ['eq', 'in', 'hasAll', 'startsWith', 'endsWith', 'contains']

/** A pattern that an operator compares as text. */
function patternIn({ field, value }: Condition, { form, name }: Operator): string | undefined {
  const better = patternOperators[field]
  if (better === undefined || !textOperators.includes(form.name) || !/\*|\{[^{}]*\}/.test(value)) return undefined
  const hint = better === 'pathMatches' || better.startsWith('hostMatches') ? '' : ', whose pattern is * and ?'
  return `${name} compares ${value} as text, not as a pattern: use ${better}${hint}`
}

/** Fields that are objects in requests that have them. */
const objectFields = ['input.body', 'mcp.arguments', 'agent.claims']

function isTextOfObject(field: Field, { form }: Operator, objects: ReadonlySet<string>): boolean {
  return form.suits === 'text' && (objectFields.includes(field.text) || objects.has(field.text))
}

/** Fields of JSON below which some condition of the policy names a member: `input.body.order` of `input.body.order.id`. */
export function objectFieldsOf(policy: Policy): ReadonlySet<string> {
  const found = new Set<string>()
  for (const rule of policy.rules) {
    for (const { condition } of leavesOf(rule, '')) {
      const { text, kind } = fieldOf(condition)
      const member = kind.below === 'any' ? /^(.*\w)\.\w[^.[\]]*$/.exec(text.replace(/\.@\w+$/, '')) : null
      if (member !== null) found.add(member[1]!)
    }
  }
  return found
}
