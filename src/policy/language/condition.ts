import { didYouMean } from '../../base/nearest.ts'
import type { DetectorSearch } from '../detectors/detectors.ts'
import type { Facts } from '../request/facts.ts'
import { foldName } from '../request/names.ts'
import { askCounted } from '../turns/evaluation.ts'
import { False, not, True, type Truth, Unreadable } from '../values/truth.ts'
import { type Field, parseField } from './fields/fields.ts'
import type { Zone } from './fields/zone.ts'
import type { Condition } from './model.ts'
import { type ElementTest, searchOf } from './operators/element-tests.ts'
import { findOperator, isNegation, type Operator, operatorNames } from './operators/operators.ts'
import { asker } from './operators/quantify.ts'
import { riskTest } from './operators/risk-score.ts'
import type { Operand } from './operators/values.ts'
import { ConditionError } from './problems.ts'

/** A condition or group ready to be asked. */
export type Test = (facts: Facts) => Truth

/** The surroundings of a condition: zone and hidden header fields of its policy. */
export interface Scope {
  readonly zone: Zone
  /** Lower-case names of header fields of which rules may learn the presence only. */
  readonly hiddenHeaders: ReadonlySet<string>
}

/** Header fields that always hold credentials. */
export const credentialHeaders: readonly string[] = ['authorization', 'cookie']

export function fieldOf({ field }: Condition): Field {
  const found = parseField(field)
  if (typeof found === 'string') throw new TypeError(`a condition that was not parsed: ${found}`)
  return found
}

export function operatorOf({ operator }: Condition): Operator {
  const found = findOperator(operator)
  if (found === undefined) throw new TypeError(`a condition that was not parsed: ${operator}`)
  return found
}

/** The test of one condition. @throws ConditionError saying what is wrong with it */
export function compileCondition(condition: Condition, scope: Scope): Test {
  const operator = findOperator(condition.operator)
  if (operator === undefined) throw unknownOperator(condition.operator)
  const field = parseField(condition.field)
  if (typeof field === 'string') throw new ConditionError(field, 'E_FIELD')
  checkSuits(operator, field, scope)
  const test = positiveTest({ operator, field, condition, scope })
  return isNegation(operator, condition.value) ? facts => not(test(facts)) : test
}

export function unknownOperator(name: string): ConditionError {
  const hint = didYouMean(name, operatorNames)
  return new ConditionError(`unknown operator ${JSON.stringify(name.slice(0, 64))}${hint}`, 'E_OPERATOR')
}

function isHidden({ header }: Field, { hiddenHeaders }: Scope): boolean {
  return header !== undefined && hiddenHeaders.has(header)
}

function checkSuits({ form, name }: Operator, field: Field, scope: Scope): void {
  if (isHidden(field, scope) && form.name !== 'exists')
    throw new ConditionError(`${field.text} holds a credential: the operator must be exists or notExists`)
  if (field.kind.phase === 'risk') return
  const window = form.name === 'between' && field.text === 'time.clock'
  if (form.suits === 'ordering' && !window && !mayBeNumber(field))
    throw new ConditionError(`${name} must be used on a number field, not on ${field.text}`)
  const textless = field.type === 'number' || field.type === 'boolean'
  if (form.suits === 'text' && textless) {
    const instead = field.kind.phase === 'body' ? ': use input.bodyText, or a text in the body: input.body.NAME' : ''
    throw new ConditionError(`${name} must be used on a text field, not on ${field.text}, a ${field.type}${instead}`)
  }
}

/** Whether a field can hold a number: not a name of the head or the clock. */
function mayBeNumber(field: Field): boolean {
  if (field.type === 'number' || field.type === 'json') return true
  if (field.ofNames) return false
  const named = field.kind.below !== 'none' || field.kind.phase === 'body'
  return field.type === 'string' && named && field.kind.values === undefined
}

/** Bodies may be long: their conditions are asked in turns. */
function counted(test: Test): Test {
  return facts => askCounted(test, facts)
}

/** Servers read a path in different ways: where the answers differ, the right one is unknown. */
function onEveryReading(test: Test): Test {
  return facts => {
    const { readings } = facts
    if (readings === undefined) return test(facts)
    const first = test(readings[0]!)
    return readings.every(reading => test(reading) === first) ? first : Unreadable
  }
}

export interface ConditionParts {
  readonly operator: Operator
  readonly field: Field
  readonly condition: Condition
  readonly scope: Scope
}

/** The test of the positive form of the operator. */
function positiveTest({ operator, field, condition, scope }: ConditionParts): Test {
  const { value, valueType, ignoreCase, quantifier } = condition
  const operand: Operand = { field, value, valueType, ignoreCase }
  const { kind, plain } = field
  if (kind.phase === 'risk') return riskTest(operator, operand)
  if (kind.detects !== undefined && operator.form.name === 'detects')
    return detectsTest(kind.detects, searchOf(operand))
  const test = field.ofNames ? nameTest(operator, operand) : operator.form.build(operand)
  if (plain !== undefined) {
    const onPlain = isPlainEquality(operator, condition) ? plainEquality(plain, field, value) : plainTest(plain, test)
    return kind.ofPath === true ? onEveryReading(onPlain) : onPlain
  }
  const ask = asker(operator, test, quantifier)
  const { zone } = scope
  const { read } = field
  const onValue: Test = facts => ask(read(facts, zone))
  if (kind.phase === 'body') return counted(onValue)
  return kind.ofPath === true ? onEveryReading(onValue) : onValue
}

/** Readers of JSON differ in the letter case of names: where it matters, the right answer is unknown. */
function nameTest({ form }: Operator, operand: Operand): ElementTest {
  const exact = form.build(operand)
  const folded = form.build({ ...operand, ignoreCase: true })
  return element => {
    const answer = exact(element)
    return folded(foldNames(element)) === answer ? answer : Unreadable
  }
}

function foldNames(element: unknown): unknown {
  if (Array.isArray(element)) return element.map(foldNames)
  return typeof element === 'string' ? foldName(element) : element
}

function detectsTest(detects: NonNullable<Field['kind']['detects']>, search: DetectorSearch): Test {
  return counted(facts => detects(facts, search))
}

function isPlainEquality({ form }: Operator, { ignoreCase, valueType }: Condition): boolean {
  return form.name === 'eq' && !ignoreCase && valueType === undefined
}

/** Compares two strings, without the calls of a test: most conditions do this. */
function plainEquality(plain: (facts: Facts) => string, { kind }: Field, value: string): Test {
  const text = kind.normalise?.(value) ?? value
  return facts => (plain(facts) === text ? True : False)
}

function plainTest(plain: (facts: Facts) => string, test: ElementTest): Test {
  return facts => test(plain(facts))
}
