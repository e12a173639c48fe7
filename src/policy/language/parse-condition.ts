import { isRecord } from '../values/path.ts'
import { compileCondition, type Scope, unknownOperator } from './condition.ts'
import { Keys } from './keys.ts'
import { type Condition, limits, type Node } from './model.ts'
import { findOperator, type Operator } from './operators/operators.ts'
import { ConditionError, type Problems } from './problems.ts'

export const conditionKeys = ['field', 'operator', 'value', 'ignoreCase', 'quantifier', 'valueType']
const groupKeys = ['all', 'any', 'not'] as const

/** State while the conditions of one rule are read. */
interface ConditionContext {
  readonly problems: Problems
  readonly scope: Scope
  /** Conditions seen in this rule. */
  count: number
  /** Conditions and groups seen in this rule; an alias in YAML may stand for a group within itself. */
  nodes: number
}

const maxNodes = limits.conditionsPerRule * limits.depth

/** The conditions of one rule. A missing list is a mistake; an empty one holds for every request. */
export function parseConditions(value: unknown, path: string, problems: Problems, scope: Scope): readonly Node[] {
  if (!Array.isArray(value)) {
    const hint =
      value === undefined ? 'a rule must have conditions; [] matches every request' : 'conditions must be a list'
    problems.add('E_CONDITIONS', path, hint)
    return []
  }
  const reading: ConditionContext = { problems, scope, count: 0, nodes: 0 }
  const nodes = readNodes(value, path, 1, reading)
  if (isFull(reading)) {
    problems.add('E_LIMIT', path, `a rule must have at most ${limits.conditionsPerRule} conditions`)
  }
  return nodes
}

function isFull({ count, nodes }: ConditionContext): boolean {
  return count > limits.conditionsPerRule || nodes > maxNodes
}

function readNodes(values: readonly unknown[], path: string, depth: number, reading: ConditionContext): Node[] {
  const nodes: Node[] = []
  for (const [index, value] of values.entries()) {
    // Past the limit nothing is read: a hostile document must not cost its size times the work of a condition.
    if (isFull(reading)) break
    const node = readNode(value, `${path}[${index}]`, depth, reading)
    if (node !== undefined) nodes.push(node)
  }
  return nodes
}

function readNode(value: unknown, path: string, depth: number, reading: ConditionContext): Node | undefined {
  reading.nodes++
  const given = isRecord(value) ? value : {}
  const group = groupKeys.find(key => Object.hasOwn(given, key))
  if (group !== undefined) return readGroup(given, group, { path, depth }, reading)
  if (!('field' in given || 'Field' in given)) {
    reading.problems.add('E_CONDITION', path, 'must be a condition (field, operator, value) or a group (all, any, not)')
    return undefined
  }
  reading.count++
  const keys = Keys.of(given, { path, known: conditionKeys, ignored: [] }, reading.problems)
  return keys === undefined ? undefined : readCondition(keys, path, reading)
}

function readGroup(
  value: Record<string, unknown>,
  kind: (typeof groupKeys)[number],
  { path, depth }: { readonly path: string; readonly depth: number },
  reading: ConditionContext,
): Node | undefined {
  const { problems } = reading
  const others = Object.keys(value).filter(key => key !== kind)
  for (const key of others) problems.add('E_UNKNOWN_KEY', `${path}.${key}`, `a group must have one key, ${kind}`)
  if (depth > limits.depth) {
    problems.add('E_LIMIT', path, `groups must be nested at most ${limits.depth} deep`)
    return undefined
  }
  const inner = value[kind]
  const place = `${path}.${kind}`
  if (kind === 'not' && !Array.isArray(inner)) {
    const node = readNode(inner, place, depth + 1, reading)
    return node && { not: node }
  }
  if (!Array.isArray(inner)) {
    problems.add('E_CONDITION', place, `${kind} must be a list`)
    return undefined
  }
  if (inner.length === 0) {
    problems.add('E_EMPTY_GROUP', place, `${kind} must have conditions`)
    return undefined
  }
  const nodes = readNodes(inner, place, depth + 1, reading)
  if (kind === 'not') return { not: { all: nodes } }
  return kind === 'all' ? { all: nodes } : { any: nodes }
}

function readCondition(keys: Keys, path: string, { problems, scope }: ConditionContext): Condition | undefined {
  const field = keys.get('field')
  if (typeof field !== 'string') {
    problems.add('E_FIELD', path, 'field must be text')
    return undefined
  }
  try {
    const name = keys.get('operator')
    const operator = typeof name === 'string' ? findOperator(name) : undefined
    if (operator === undefined) throw unknownOperator(typeof name === 'string' ? name : '')
    const condition: Condition = {
      field,
      operator: operator.name,
      ...readValue(keys, operator),
      ignoreCase: keys.flag('ignoreCase'),
      quantifier: keys.choice('quantifier', ['any', 'all'], 'any'),
    }
    compileCondition(condition, scope)
    return condition
  } catch (error) {
    if (!(error instanceof ConditionError)) throw error
    problems.add(error.code, path, error.message)
    return undefined
  }
}

type WireValue = Pick<Condition, 'value' | 'valueType'>

/** The value as wire text. Only equality distinguishes a typed value from its spelling. @throws ConditionError */
function readValue(keys: Keys, operator: Operator): WireValue {
  const value = keys.get('value') ?? operator.form.standard
  if (value === undefined) throw new ConditionError(`${operator.name} must have a value`)
  const equality = operator.form.name === 'eq'
  if (typeof value === 'string') return { value, valueType: equality ? readValueType(keys) : undefined }
  if (typeof value === 'boolean') return { value: String(value), valueType: equality ? 'boolean' : undefined }
  if (typeof value === 'number' && !isExact(value)) {
    throw new ConditionError('this number must be in quotes, so that it keeps all its digits')
  }
  if (typeof value === 'number') return { value: String(value), valueType: equality ? 'number' : undefined }
  if (!Array.isArray(value)) {
    throw new ConditionError('a value must be text, a number, a boolean or a list; put text with { or [ in quotes')
  }
  if (value.some(isNested)) throw new ConditionError('a list must contain plain values')
  if (!operator.form.takesList) throw new ConditionError(oneValue(operator))
  return { value: JSON.stringify(value), valueType: undefined }
}

function oneValue({ name, form }: Operator): string {
  const remedy = form.name === 'eq' ? 'use in for a list' : 'put text such as [a-z] in quotes'
  return `${name} must have one value, not a list; ${remedy}`
}

function readValueType(keys: Keys): Condition['valueType'] {
  const type = keys.get('valueType')
  if (type === undefined || type === null) return undefined
  return keys.choice('valueType', ['number', 'boolean'], 'number')
}

function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function isExact(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
}
