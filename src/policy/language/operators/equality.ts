import { didYouMean } from '../../../base/nearest.ts'
import { chargeElement, progressOf } from '../../turns/evaluation.ts'
import { parseNumeric } from '../../values/numbers.ts'
import { Several } from '../../values/path.ts'
import { False, missing, True, type Truth } from '../../values/truth.ts'
import { ConditionError } from '../problems.ts'
import { ListLookup } from './list-lookup.ts'
import { type Operand, readList, type Scalar } from './values.ts'

export type ElementTest = (element: unknown) => Truth

/** `eq`: see ListLookup for what equals what. */
export function buildEq(operand: Operand): ElementTest {
  const scalar = scalarOf(operand)
  const lookup = new ListLookup([scalar], operand)
  const { text, type } = scalar
  // Plain text is by far the most common.
  if (type === undefined && !operand.ignoreCase) {
    return element => ((typeof element === 'string' ? element === text : lookup.has(element)) ? True : False)
  }
  return element => (lookup.has(element) ? True : False)
}

/** `in`: some listed value is equal. */
export function buildIn(operand: Operand): ElementTest {
  const lookup = new ListLookup(normaliseList(operand), operand)
  return element => (lookup.has(element) ? True : False)
}

/** `hasAll`: each listed value equals some element of the value. */
export function buildHasAll(operand: Operand): ElementTest {
  const items = normaliseList(operand)
  const lookup = new ListLookup(items, operand)
  const hasAll: ElementTest = value => {
    const elements = elementsOf(value)
    const progress = progressOf(hasAll, False, () => new Set<number>(items.keys()))
    const wanted = progress.state
    for (; progress.at < elements.length && wanted.size > 0; progress.at++) {
      chargeElement(elements[progress.at])
      for (const place of lookup.find(elements[progress.at])) wanted.delete(place)
    }
    return wanted.size === 0 ? True : False
  }
  return hasAll
}

/** The value of `eq`. */
export const scalarOf = (operand: Operand): Scalar =>
  normalise({ text: operand.value, type: operand.valueType }, operand)

/** The values that a field stands for. */
function elementsOf(value: unknown): readonly unknown[] {
  if (value instanceof Several) return value.leaves
  if (value === missing) return []
  return Array.isArray(value) ? value : [value]
}

/** The values of `in` and `hasAll`. */
export function normaliseList(operand: Operand): readonly Scalar[] {
  const items = readList(operand.value)
  const ready: Scalar[] = []
  for (const item of items) {
    const scalar = normalise(item, operand)
    ready.push(scalar)
  }
  return ready
}

/** The value in the form that requests carry; a value that no request can have is a mistake. */
function normalise(scalar: Scalar, operand: Operand): Scalar {
  const { kind, type } = operand.field
  const shown = JSON.stringify(scalar.text)
  if (type === 'number' && parseNumeric(scalar.text) === undefined)
    throw new ConditionError(`${shown} must be a number`)
  if (type === 'boolean' && !/^(true|false)$/.test(scalar.text))
    throw new ConditionError(`${shown} must be true or false`)
  if (type !== kind.type) return scalar
  const text = kind.normalise === undefined ? scalar.text : kind.normalise(scalar.text)
  if (text === undefined) throw new ConditionError(`${shown} must be a value that ${operand.field.text} can have`)
  if (kind.values !== undefined && !kind.values.includes(text)) {
    throw new ConditionError(`${shown} must be one of ${kind.values.join(', ')}${didYouMean(text, kind.values)}`)
  }
  return { text, type: scalar.type }
}
