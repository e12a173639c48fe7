import { didYouMean } from '../../../base/nearest.ts'
import { chargeElement, progressOf } from '../../turns/evaluation.ts'
import { compareNumeric, isNumeric, LongNumber, type Numeric, parseNumeric } from '../../values/numbers.ts'
import { Several } from '../../values/path.ts'
import { False, missing, True, type Truth } from '../../values/truth.ts'
import { foldValue } from './folding.ts'
import { ListLookup } from './list-lookup.ts'
import { fold, type Operand, readList, type Scalar, WrongValue } from './values.ts'

export type ElementTest = (element: unknown) => Truth

/** `eq`: see `matcherOf` for what equals what. */
export function buildEq(operand: Operand): ElementTest | WrongValue {
  const scalar = normalise({ text: operand.value, type: operand.valueType }, operand)
  if (scalar instanceof WrongValue) return scalar
  const equals = matcherOf(scalar, operand)
  return element => (equals(element) ? True : False)
}

/** `in`: some listed value is equal. */
export function buildIn(operand: Operand): ElementTest | WrongValue {
  const items = normaliseList(operand)
  if (items instanceof WrongValue) return items
  const lookup = new ListLookup(items, operand)
  return element => (lookup.find(element).length > 0 ? True : False)
}

/** `hasAll`: each listed value equals some element of the value. */
export function buildHasAll(operand: Operand): ElementTest | WrongValue {
  const items = normaliseList(operand)
  if (items instanceof WrongValue) return items
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

/** The values that a field stands for. */
function elementsOf(value: unknown): readonly unknown[] {
  if (value instanceof Several) return value.leaves
  if (value === missing) return []
  return Array.isArray(value) ? value : [value]
}

function normaliseList(operand: Operand): readonly Scalar[] | WrongValue {
  const items = readList(operand.value)
  if (items instanceof WrongValue) return items
  const ready: Scalar[] = []
  for (const item of items) {
    const scalar = normalise(item, operand)
    if (scalar instanceof WrongValue) return scalar
    ready.push(scalar)
  }
  return ready
}

/** The value in the form that requests carry; a value that no request can have is a mistake. */
function normalise(scalar: Scalar, operand: Operand): Scalar | WrongValue {
  const { kind, type } = operand.field
  const shown = JSON.stringify(scalar.text)
  if (type === 'number' && parseNumeric(scalar.text) === undefined) return new WrongValue(`${shown} must be a number`)
  if (type === 'boolean' && !/^(true|false)$/.test(scalar.text)) return new WrongValue(`${shown} must be true or false`)
  if (type !== kind.type) return scalar
  const text = kind.normalise === undefined ? scalar.text : kind.normalise(scalar.text)
  if (text === undefined) return new WrongValue(`${shown} is not a value of ${operand.field.text}`)
  if (kind.values !== undefined && !kind.values.includes(text)) {
    return new WrongValue(`${shown} is not a value of ${operand.field.text}${didYouMean(text, kind.values)}`)
  }
  return { text, type: scalar.type }
}

function caseOf(text: string, operand: Operand): string {
  return operand.ignoreCase ? fold(text) : text
}

/**
 * A string equals the same text; a number the number that the value spells; booleans and null their words. A value
 * written as a number or boolean equals that type alone, except in fields that carry text, where it equals its spelling.
 */
function matcherOf(scalar: Scalar, operand: Operand): (element: unknown) => boolean {
  const text = caseOf(scalar.text, operand)
  const number = scalar.type === 'boolean' ? undefined : parseNumeric(scalar.text)
  const word = scalar.type === 'number' ? '' : text
  const ofText = textMatcher(scalar, text, operand)
  return element => {
    if (typeof element === 'string') return ofText(element)
    if (typeof element === 'number' || element instanceof LongNumber) return equalNumbers(element, number)
    if (typeof element === 'boolean') return word === String(element)
    return element === null && scalar.type === undefined && word === 'null'
  }
}

function equalNumbers(element: Numeric, number: Numeric | undefined): boolean {
  return number !== undefined && compareNumeric(element, number) === 0
}

function textMatcher(scalar: Scalar, text: string, operand: Operand): (element: string) => boolean {
  if (scalar.type === undefined) {
    return operand.ignoreCase ? element => foldValue(element) === text : element => element === text
  }
  if (operand.field.kind.channel === 'json') return () => false
  if (scalar.type === 'boolean') return element => element === scalar.text
  const number = parseNumeric(scalar.text)
  return element => {
    const spelled = parseNumeric(element)
    return isNumeric(spelled) && equalNumbers(spelled, number)
  }
}
