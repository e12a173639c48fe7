import { fieldOf } from '../language/condition.ts'
import { type Field, hideValue } from '../language/fields/fields.ts'
import type { Condition, Node, Rule } from '../language/model.ts'
import { findOperator } from '../language/operators/operators.ts'
import type { Facts } from '../request/facts.ts'
import { Messages, typeName } from '../values/path.ts'
import { True, Unreadable, unreadable } from '../values/truth.ts'
import type { CompiledPolicy } from './compile.ts'
import type { DecisionRecord, MatchedCondition } from './decision.ts'
import { showActual } from './redact.ts'
import { type CompiledNode, type CompiledRule, innerNodes } from './rule.ts'

/** `input.body.amount gt "100"`; groups as all(...), any(...), not(...). */
export function describeNode(node: Node): string {
  if ('field' in node) return describeCondition(node)
  const name = 'all' in node ? 'all' : 'any' in node ? 'any' : 'not'
  return `${name}(${innerNodes(node).map(describeNode).join(', ')})`
}

const longestValue = 80

function describeCondition(condition: Condition): string {
  const { field, operator, value } = condition
  const shown = value.length > longestValue ? `${value.slice(0, longestValue - 1)}…` : value
  const quantifier = condition.quantifier === 'all' ? ' (all)' : ''
  // A list is JSON as it is.
  const isList = value.startsWith('[') && findOperator(operator)?.form.takesList === true
  return `${field} ${operator} ${isList ? shown : JSON.stringify(shown)}${quantifier}`
}

/** The conditions that made a rule match, each with the value it saw. */
export function matchedConditions(rule: CompiledRule, policy: CompiledPolicy, facts: Facts): MatchedCondition[] {
  const leaves = rule.nodes.flatMap(node => holdingLeaves(node, facts))
  return leaves.map(({ node }) => ({
    condition: describeNode(node),
    actual: 'field' in node ? actualOf(node, policy, facts) : null,
  }))
}

/** Conditions that hold; a `not` is shown as it is, without the values inside. */
function holdingLeaves(compiled: CompiledNode, facts: Facts): CompiledNode[] {
  if (compiled.test(facts) !== True) return []
  const isLeaf = 'field' in compiled.node || 'not' in compiled.node
  return isLeaf ? [compiled] : compiled.inner.flatMap(inner => holdingLeaves(inner, facts))
}

export function actualOf(condition: Condition, policy: CompiledPolicy, facts: Facts): unknown {
  const field = visibleField(condition, policy)
  return showActual(field, field.read(facts, policy.scope.zone))
}

function visibleField(condition: Condition, { scope }: CompiledPolicy): Field {
  const field = fieldOf(condition)
  return field.header !== undefined && scope.hiddenHeaders.has(field.header) ? hideValue(field) : field
}

/** A condition that could not be evaluated, and why. */
export interface UnreadableField {
  readonly field: string
  readonly cause: string
}

/** The conditions of a rule that cannot be evaluated. */
export function unreadableFields(rule: CompiledRule, policy: CompiledPolicy, facts: Facts): readonly UnreadableField[] {
  if (!rule.tests.some(test => test(facts) === Unreadable)) return allReadable
  return rule.nodes
    .flatMap(node => unreadableLeaves(node, facts))
    .map(condition => ({
      field: condition.field,
      cause: causeOf(condition, policy, facts),
    }))
}

const allReadable: readonly UnreadableField[] = []

function unreadableLeaves({ node, test, inner }: CompiledNode, facts: Facts): Condition[] {
  if (test(facts) !== Unreadable) return []
  return 'field' in node ? [node] : inner.flatMap(child => unreadableLeaves(child, facts))
}

const numeric = ['gt', 'gte', 'lt', 'lte', 'between']

function causeOf(condition: Condition, policy: CompiledPolicy, facts: Facts): string {
  const field = fieldOf(condition)
  const value = field.read(facts, policy.scope.zone)
  if (value === unreadable) {
    if (field.kind.phase === 'body') return facts.body?.problem ?? 'the body is not known'
    if (field.kind.destination === true) return 'the address is not known'
    return field.kind.repeats === true ? 'servers may read it in different ways' : 'not known'
  }
  if (value instanceof Messages) return 'the messages of the batch differ'
  if (field.kind.ofPath === true && facts.readings !== undefined) return 'servers read this path in different ways'
  if (numeric.includes(condition.operator)) return `${typeName(value)} where a number is needed`
  return typeof value === 'string' ? 'text too long to search' : `${typeName(value)} where text is needed`
}

/** Conditions that a reason names; of more it says how many. */
export const shownConditions = 3

/**
 * `rule "x": input.body.amount gt "100"`. It goes to the log: values of the request stand in `matched` alone.
 *
 * @param matched conditions of the rule that held
 * @param unread conditions of the rule that could not be evaluated
 */
export function ruleReason(
  rule: Rule,
  matched: readonly MatchedCondition[],
  unread: readonly UnreadableField[],
): string {
  const name = `rule ${JSON.stringify(rule.name)}`
  if (unread.length > 0) {
    const given = rule.reason === '' ? '' : ` (${rule.reason})`
    return `${name}${given} applied because ${unreadableText(unread)}`
  }
  const listed = matched.slice(0, shownConditions).map(({ condition }) => condition)
  if (matched.length > shownConditions) listed.push(`${matched.length - shownConditions} more`)
  const given = rule.reason === '' ? [] : [rule.reason]
  const why = listed.length === 0 ? ['every request'] : [listed.join(', ')]
  return `${name}: ${[...given, ...why].join(': ')}`
}

function unreadableText(fields: readonly UnreadableField[]): string {
  const [first] = fields
  const more = fields.length > 1 ? ` and ${fields.length - 1} more` : ''
  return `${first?.field} could not be evaluated (${first?.cause})${more}`
}

const shownSignals = 3

/** `risk 0.95 > 0.80: secret-in-body (aws-access-key) +60, new-host +20, 1 more`. */
export function riskReason({ score, threshold, signals }: NonNullable<DecisionRecord['risk']>): string {
  const first = `risk ${score.toFixed(2)} > ${threshold.toFixed(2)}`
  if (signals.length === 0) return first
  const listed = signals.slice(0, shownSignals).map(({ signal, points, detail }) => {
    return `${signal}${detail === undefined ? '' : ` (${detail})`} ${points < 0 ? '' : '+'}${points}`
  })
  const more = signals.length > shownSignals ? [`${signals.length - shownSignals} more`] : []
  return `${first}: ${[...listed, ...more].join(', ')}`
}
