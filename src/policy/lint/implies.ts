import { parseHostPattern } from '../../base/host.ts'
import { type ConditionParts, fieldOf, operatorOf, type Scope } from '../language/condition.ts'
import type { Condition, Node } from '../language/model.ts'
import { isNegation } from '../language/operators/operators.ts'
import { literalPrefix, patternWithin } from '../language/operators/patterns.ts'
import { fold, readWords } from '../language/operators/values.ts'
import { holdsFor } from './examined.ts'
import { areApart, isWithin, rangeOf } from './ranges.ts'

// Relations between two conditions. `false` means "not proved".

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
interface ComparedLeaf extends ConditionParts {
  /** Holds only of a value that is there. */
  readonly positive: boolean
  /** Whether the field always has exactly one value. */
  readonly single: boolean
}

const alwaysOne = ['input.port', 'agent.trustScore', 'agent.ageHours', 'time.hour', 'time.clock', 'time.dayOfWeek']

function readLeaf(condition: Condition, scope: Scope): ComparedLeaf {
  const field = fieldOf(condition)
  const operator = operatorOf(condition)
  const negation = isNegation(operator, condition.value)
  const positive = !negation && operator.form.name !== 'isEmpty'
  const single = field.plain !== undefined || alwaysOne.includes(field.text)
  return { condition, field, operator, positive, single, scope }
}

/** `exists "false"`, `notExists "true"`. */
function isAbsence({ operator, condition }: ComparedLeaf): boolean {
  return operator.form.name === 'exists' && isNegation(operator, condition.value) && condition.quantifier === 'any'
}

function impliesOnField(left: ComparedLeaf, right: ComparedLeaf): boolean {
  if (left.condition.quantifier !== right.condition.quantifier) return false
  if (right.operator.form.name === 'exists' && right.positive) return left.positive
  if (!left.positive && !right.positive) return negationsImply(left, right)
  if (!left.positive) return false
  if (valuesWithin(left, right) || valuesHold(left, right)) return true
  return (
    right.positive &&
    (rangeWithin(left, right) || prefixWithin(left, right) || patternsWithin(left, right) || hostsWithin(left, right))
  )
}

/** not a implies not b when b implies a. */
function negationsImply(left: ComparedLeaf, right: ComparedLeaf): boolean {
  const equalities = valuesOf(left) !== undefined && valuesOf(right) !== undefined
  if (left.operator.form !== right.operator.form && !equalities) return false
  return impliesOnField(positiveOf(right), positiveOf(left))
}

function positiveOf(leaf: ComparedLeaf): ComparedLeaf {
  const condition = { ...leaf.condition, operator: leaf.operator.form.name }
  return { ...leaf, operator: operatorOf(condition), positive: true, condition }
}

/** Every value that an equality allows; undefined for other conditions. */
function valuesOf({ condition, operator, field }: ComparedLeaf): readonly string[] | undefined {
  if (condition.ignoreCase || condition.valueType !== undefined) return undefined
  const { name } = operator.form
  const words = name === 'eq' ? [condition.value] : name === 'in' ? readWords(condition.value) : undefined
  if (words === undefined) return undefined
  return words.map(word => field.kind.normalise?.(word) ?? word)
}

/** Whether the values of one equality are among those of another. */
function valuesWithin(left: ComparedLeaf, right: ComparedLeaf): boolean {
  const [inner, outer] = [valuesOf(left), valuesOf(right)]
  return right.positive && inner !== undefined && outer !== undefined && inner.every(value => outer.includes(value))
}

/** Whether every value that `left` allows makes `right` true. Only for plain strings of the head, which can be tried. */
function valuesHold(left: ComparedLeaf, right: ComparedLeaf): boolean {
  const values = left.positive && left.field.plain !== undefined ? valuesOf(left) : undefined
  return values?.every(value => holdsFor(right.condition, right.scope, value)) ?? false
}

function valuesFail(left: ComparedLeaf, right: ComparedLeaf): boolean {
  const values = left.positive && left.field.plain !== undefined ? valuesOf(left) : undefined
  return values?.every(value => !holdsFor(right.condition, right.scope, value)) ?? false
}

function rangeWithin(left: ComparedLeaf, right: ComparedLeaf): boolean {
  const [inner, outer] = [rangeOf(left.condition, left.operator), rangeOf(right.condition, right.operator)]
  return inner !== undefined && outer !== undefined && isWithin(inner, outer)
}

function rangesApart(left: ComparedLeaf, right: ComparedLeaf): boolean {
  const [a, b] = [rangeOf(left.condition, left.operator), rangeOf(right.condition, right.operator)]
  return a !== undefined && b !== undefined && areApart(a, b)
}

/** Prefixes, one of which every value has; undefined when no such list is known. */
function prefixesOf({ condition, operator }: ComparedLeaf): readonly string[] | undefined {
  const { name } = operator.form
  if (operator.negated || condition.ignoreCase) return undefined
  if (name === 'startsWith') return [condition.value]
  const words = name === 'pathMatches' ? readWords(condition.value) : undefined
  return words?.map(literalPrefix)
}

function prefixWithin(left: ComparedLeaf, right: ComparedLeaf): boolean {
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

/** A literal is within its class, a class within `{id}`. */
function patternsWithin(left: ComparedLeaf, right: ComparedLeaf): boolean {
  const [inner, outer] = [patternsOf(left), patternsOf(right)]
  return inner?.every(one => outer?.some(other => patternWithin(one, other))) ?? false
}

function patternsOf({ condition, operator }: ComparedLeaf): readonly string[] | undefined {
  if (operator.form.name !== 'pathMatches' || condition.ignoreCase) return undefined
  return readWords(condition.value)
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

function prefixesApart(left: ComparedLeaf, right: ComparedLeaf): boolean {
  const [a, b] = [prefixesOf(left), prefixesOf(right)]
  if (a === undefined || b === undefined) return false
  return a.every(one => b.every(other => !one.startsWith(other) && !other.startsWith(one)))
}

function hostsWithin(left: ComparedLeaf, right: ComparedLeaf): boolean {
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
