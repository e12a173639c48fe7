import { didYouMean } from '../../base/nearest.ts'
import type { Facts } from '../request/facts.ts'
import { askCounted } from '../turns/evaluation.ts'
import { not, type Truth, Unreadable } from '../values/truth.ts'
import { type Field, hideValue, parseField } from './fields/fields.ts'
import type { Zone } from './fields/zone.ts'
import type { Condition } from './model.ts'
import { findOperator, isNegation, type Operator, operatorNames } from './operators/operators.ts'
import { asker } from './operators/quantify.ts'
import { riskTest } from './operators/risk-test.ts'
import { type Operand, WrongValue } from './operators/values.ts'
import type { ProblemCode } from './problems.ts'

/** A condition or group ready to be asked. */
export type Test = (facts: Facts) => Truth

/** What compiling a condition needs beside the condition. */
export interface Scope {
  readonly zone: Zone
  /** Lower-case names of header fields of which rules may learn the presence only. */
  readonly hiddenHeaders: ReadonlySet<string>
}

/** Header fields that always hold credentials. */
export const credentialHeaders: readonly string[] = ['authorization', 'cookie']

export class WrongCondition {
  readonly code: ProblemCode
  readonly message: string
  constructor(code: ProblemCode, message: string) {
    this.code = code
    this.message = message
  }
}

/** The test of one condition, or what is wrong with it. */
export function compileCondition(condition: Condition, scope: Scope): Test | WrongCondition {
  const operator = findOperator(condition.operator)
  if (operator === undefined) return unknownOperator(condition.operator)
  const field = parseField(condition.field)
  if (typeof field === 'string') return new WrongCondition('E_FIELD', field)
  const refused = checkSuits(operator, field, scope)
  if (refused !== undefined) return refused
  const { value, valueType, ignoreCase } = condition
  const operand: Operand = { field, value, valueType, ignoreCase }
  const positive =
    field.kind.phase === 'risk' ? riskTest(operator, operand) : positiveTest({ operator, operand, condition, scope })
  if (positive instanceof WrongValue) return new WrongCondition(positive.code, positive.message)
  const test =
    field.kind.phase === 'body' ? counted(positive) : field.kind.ofPath === true ? onEveryReading(positive) : positive
  return isNegation(operator, value) ? facts => not(test(facts)) : test
}

export function unknownOperator(name: string): WrongCondition {
  const hint = didYouMean(name, operatorNames)
  return new WrongCondition('E_OPERATOR', `unknown operator ${JSON.stringify(name.slice(0, 64))}${hint}`)
}

function checkSuits(operator: Operator, field: Field, scope: Scope): WrongCondition | undefined {
  const { form, name } = operator
  const wrong = (text: string) => new WrongCondition('E_VALUE', text)
  const credential = field.header !== undefined && scope.hiddenHeaders.has(field.header)
  if (credential && form.name !== 'exists')
    return wrong(`${field.text} holds a credential: the operator must be exists or notExists`)
  if (field.kind.phase === 'risk') return undefined
  const window = form.name === 'between' && field.text === 'time.clock'
  if (form.suits === 'ordering' && !window && !mayBeNumber(field))
    return wrong(`${name}: ${field.text} must be a number field`)
  const textless = field.type === 'number' || field.type === 'boolean'
  if (form.suits === 'text' && textless) return wrong(`${name}: ${field.text} must be a text field`)
  return undefined
}

/** Whether a field can hold a number: not a name of the head or the clock. */
function mayBeNumber(field: Field): boolean {
  if (field.type === 'number' || field.type === 'json') return true
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

interface Parts {
  readonly operator: Operator
  readonly operand: Operand
  readonly condition: Condition
  readonly scope: Scope
}

function positiveTest({ operator, operand, condition, scope }: Parts): Test | WrongValue {
  const test = operator.form.build(operand)
  if (test instanceof WrongValue) return test
  const { field } = operand
  const { plain } = field
  if (plain !== undefined) return facts => test(plain(facts))
  const hidden = field.header !== undefined && scope.hiddenHeaders.has(field.header)
  const read = hidden && operator.form.name !== 'exists' ? hideValue(field).read : field.read
  const ask = asker(operator, test, condition.quantifier)
  const { zone } = scope
  return facts => ask(read(facts, zone))
}
