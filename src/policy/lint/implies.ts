import { parseHostPattern } from '../../base/host.ts'
import { compileCondition, type Scope } from '../language/condition.ts'
import { type Field, parseField } from '../language/fields/fields.ts'
import type { Condition, Node } from '../language/model.ts'
import { findOperator, isNegation, type Operator } from '../language/operators/operators.ts'
import { readRange } from '../language/operators/ordering.ts'
import { literalPrefix } from '../language/operators/patterns.ts'
import { fold, readWords } from '../language/operators/values.ts'
import { Facts } from '../request/facts.ts'
import type { RequestHead } from '../request/input.ts'
import { noRisk } from '../risk/risk.ts'
import { compareNumeric, type Numeric, parseNumeric } from '../values/numbers.ts'
import { True } from '../values/truth.ts'

/**
 * What one condition says about another. Only what can be proved is claimed: `false` means "not proved".
 */

/** Whether `right` holds in every case in which `left` holds. */
export function implies(left: Node, right: Node, scope: Scope): boolean {
  if (JSON.stringify(left) === JSON.stringify(right)) return true
  if ('all' in right) return right.all.every(inner => implies(left, inner, scope))
  if ('any' in left) return left.any.every(inner => implies(inner, right, scope))
  if ('any' in right && right.any.some(inner => implies(left, inner, scope))) return true
  if ('all' in left) return left.all.some(inner => implies(inner, right, scope))
  if (!('field' in left) || !('field' in right) || left.field !== right.field) return false
  return impliesOnField(readLeaf(left, scope), readLeaf(right, scope))
}

/** Whether the two can never hold together. */
export function excludes(left: Node, right: Node, scope: Scope): boolean {
  if ('not' in left && implies(right, left.not, scope)) return true
  if ('not' in right && implies(left, right.not, scope)) return true
  if (!('field' in left) || !('field' in right) || left.field !== right.field) return false
  const [a, b] = [readLeaf(left, scope), readLeaf(right, scope)]
  if (a.positive && isAbsence(b)) return true
  if (b.positive && isAbsence(a)) return true
  return a.single && (valuesFail(a, b) || valuesFail(b, a) || rangesApart(a, b) || prefixesApart(a, b))
}

/** A condition with what is needed to compare it. */
interface Leaf {
  readonly condition: Condition
  readonly field: Field
  readonly operator: Operator
  /** Holds only of a value that is there. */
  readonly positive: boolean
  /** Whether the field always has exactly one value. */
  readonly single: boolean
  readonly scope: Scope
}

const alwaysOne = ['input.port', 'agent.trustScore', 'agent.ageHours', 'time.hour', 'time.clock', 'time.dayOfWeek']

function readLeaf(condition: Condition, scope: Scope): Leaf {
  const field = parseField(condition.field) as Field
  const operator = findOperator(condition.operator) as Operator
  const negation = isNegation(operator, condition.value)
  const positive = !negation && operator.form.name !== 'isEmpty'
  const single = field.plain !== undefined || alwaysOne.includes(field.text)
  return { condition, field, operator, positive, single, scope }
}

/** `exists "false"`, `notExists "true"`. */
function isAbsence({ operator, condition }: Leaf): boolean {
  return operator.form.name === 'exists' && isNegation(operator, condition.value) && condition.quantifier === 'any'
}

function impliesOnField(left: Leaf, right: Leaf): boolean {
  if (left.condition.quantifier !== right.condition.quantifier) return false
  if (right.operator.form.name === 'exists' && right.positive) return left.positive
  if (!left.positive && !right.positive) return negationsImply(left, right)
  if (!left.positive) return false
  if (valuesWithin(left, right) || valuesHold(left, right)) return true
  return right.positive && (rangeWithin(left, right) || prefixWithin(left, right) || hostsWithin(left, right))
}

/** not a implies not b when b implies a. */
function negationsImply(left: Leaf, right: Leaf): boolean {
  const equalities = valuesOf(left) !== undefined && valuesOf(right) !== undefined
  if (left.operator.form !== right.operator.form && !equalities) return false
  return impliesOnField(positiveOf(right), positiveOf(left))
}

function positiveOf(leaf: Leaf): Leaf {
  const operator = findOperator(leaf.operator.form.name) as Operator
  return { ...leaf, operator, positive: true, condition: { ...leaf.condition, operator: operator.name } }
}

/** Every value that an equality allows; undefined for other conditions. */
function valuesOf({ condition, operator, field }: Leaf): readonly string[] | undefined {
  if (condition.ignoreCase || condition.valueType !== undefined) return undefined
  const { name } = operator.form
  const words = name === 'eq' ? [condition.value] : name === 'in' ? readWords(condition.value) : undefined
  if (words === undefined) return undefined
  return words.map(word => field.kind.normalise?.(word) ?? word)
}

/** Whether the values of one equality are among those of another. */
function valuesWithin(left: Leaf, right: Leaf): boolean {
  const [inner, outer] = [valuesOf(left), valuesOf(right)]
  return right.positive && inner !== undefined && outer !== undefined && inner.every(value => outer.includes(value))
}

/** Whether every value that `left` allows makes `right` true. Only for plain strings of the head, which can be tried. */
function valuesHold(left: Leaf, right: Leaf): boolean {
  const values = left.positive && left.field.plain !== undefined ? valuesOf(left) : undefined
  return values?.every(value => holdsOf(right, value)) ?? false
}

function valuesFail(left: Leaf, right: Leaf): boolean {
  const values = left.positive && left.field.plain !== undefined ? valuesOf(left) : undefined
  return values?.every(value => !holdsOf(right, value)) ?? false
}

function holdsOf({ condition, scope }: Leaf, value: string): boolean {
  const test = compileCondition(condition, scope)
  const key = condition.field.slice('input.'.length)
  return test(new Facts({ [key]: value, contentLength: 0, rawHeaders: [] } as unknown as RequestHead, noRisk)) === True
}

/** Numbers that a condition allows; ends that are not given are open. */
interface Range {
  readonly low?: Numeric
  readonly high?: Numeric
  readonly withLow: boolean
  readonly withHigh: boolean
}

function rangeOf({ condition, operator }: Leaf): Range | undefined {
  const { name } = operator.form
  if (operator.negated) return undefined
  if (name === 'between' && condition.field !== 'time.clock') {
    const [low, high] = readRange(condition.value)
    return { low, high, withLow: true, withHigh: true }
  }
  const limit = parseNumeric(condition.value)
  if (limit === undefined) return undefined
  const both = { withLow: name === 'gte', withHigh: name === 'lte' }
  if (name === 'gt' || name === 'gte') return { low: limit, ...both }
  return name === 'lt' || name === 'lte' ? { high: limit, ...both } : undefined
}

function rangeWithin(left: Leaf, right: Leaf): boolean {
  const [inner, outer] = [rangeOf(left), rangeOf(right)]
  if (inner === undefined || outer === undefined) return false
  return aboveLow(inner, outer) && belowHigh(inner, outer)
}

function aboveLow(inner: Range, outer: Range): boolean {
  if (outer.low === undefined) return true
  if (inner.low === undefined) return false
  const order = compareNumeric(inner.low, outer.low)
  return order > 0 || (order === 0 && (outer.withLow || !inner.withLow))
}

function belowHigh(inner: Range, outer: Range): boolean {
  if (outer.high === undefined) return true
  if (inner.high === undefined) return false
  const order = compareNumeric(inner.high, outer.high)
  return order < 0 || (order === 0 && (outer.withHigh || !inner.withHigh))
}

function rangesApart(left: Leaf, right: Leaf): boolean {
  const [a, b] = [rangeOf(left), rangeOf(right)]
  return a !== undefined && b !== undefined && (liesBelow(a, b) || liesBelow(b, a))
}

function liesBelow(lower: Range, upper: Range): boolean {
  if (lower.high === undefined || upper.low === undefined) return false
  const order = compareNumeric(lower.high, upper.low)
  return order < 0 || (order === 0 && !(lower.withHigh && upper.withLow))
}

/** Prefixes, one of which every value has; undefined when no such list is known. */
function prefixesOf({ condition, operator }: Leaf): readonly string[] | undefined {
  const { name } = operator.form
  if (operator.negated || condition.ignoreCase) return undefined
  if (name === 'startsWith') return [condition.value]
  const words = name === 'pathMatches' ? readWords(condition.value) : undefined
  return words?.map(literalPrefix)
}

function prefixWithin(left: Leaf, right: Leaf): boolean {
  const prefixes = prefixesOf(left)
  if (prefixes === undefined || right.condition.ignoreCase) return false
  if (right.operator.form.name === 'startsWith') {
    return prefixes.every(prefix => prefix.startsWith(right.condition.value))
  }
  if (right.operator.form.name !== 'pathMatches') return false
  const trees = treesOf(right.condition)
  const whole = left.operator.form.name === 'pathMatches'
  return prefixes.every(prefix => trees.some(tree => inTree(prefix, tree, whole)))
}

/** `/v1` of every pattern `/v1/**`. */
function treesOf({ value }: Condition): readonly string[] {
  return readWords(value)
    .filter(word => word.endsWith('/**') && literalPrefix(word) === word.slice(0, -3))
    .map(literalPrefix)
}

/** Whether what begins with `prefix` lies in the tree; a prefix of whole segments need not go on. */
function inTree(prefix: string, tree: string, whole: boolean): boolean {
  return prefix.startsWith(`${tree}/`) || (whole && prefix === tree)
}

function prefixesApart(left: Leaf, right: Leaf): boolean {
  const [a, b] = [prefixesOf(left), prefixesOf(right)]
  if (a === undefined || b === undefined) return false
  return a.every(one => b.every(other => !one.startsWith(other) && !other.startsWith(one)))
}

function hostsWithin(left: Leaf, right: Leaf): boolean {
  if (left.operator.form.name !== 'hostMatches' || right.operator.form.name !== 'hostMatches') return false
  const inner = readWords(left.condition.value)
  const outer = readWords(right.condition.value)
  return inner.every(one => outer.some(other => hostWithin(one, other)))
}

function hostWithin(inner: string, outer: string): boolean {
  const one = parseHostPattern(fold(inner))
  const other = parseHostPattern(fold(outer))
  if (one === undefined || other === undefined) return false
  const { suffix } = other
  const exactFits = one.exact === undefined || one.exact === other.exact || endsBelow(one.exact, suffix)
  const suffixFits = one.suffix === undefined || (suffix !== undefined && one.suffix.endsWith(suffix))
  return exactFits && suffixFits
}

function endsBelow(host: string, suffix: string | undefined): boolean {
  return suffix !== undefined && host.endsWith(suffix)
}
