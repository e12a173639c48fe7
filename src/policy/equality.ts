import { compareNumeric, isNumeric, LongNumber, type Numeric, parseNumeric } from './numbers.ts'
import { didYouMean } from './problems.ts'
import { False, True, type Truth } from './truth.ts'
import { fold, type Operand, readList, type Scalar, WrongValue } from './values.ts'

export type ElementTest = (element: unknown) => Truth

/** `eq`: see `matcherOf` for what equals what. */
export function buildEq(operand: Operand): ElementTest | WrongValue {
  const scalar = normalise({ text: operand.value, type: operand.valueType }, operand)
  if (scalar instanceof WrongValue) return scalar
  const equals = matcherOf(scalar, operand)
  return element => (equals(element) ? True : False)
}

/** `in`: some listed value is equal. Plain texts are looked up, whatever the length of the list. */
export function buildIn(operand: Operand): ElementTest | WrongValue {
  const items = normaliseList(operand)
  if (items instanceof WrongValue) return items
  const texts = new Set(items.filter(item => item.type === undefined).map(item => caseOf(item.text, operand)))
  const others = items.filter(mayEqualOther).map(item => matcherOf(item, operand))
  return element => {
    if (typeof element === 'string' && texts.has(caseOf(element, operand))) return True
    return others.some(equals => equals(element)) ? True : False
  }
}

/** Whether an entry can equal anything but its own text. */
function mayEqualOther(item: Scalar): boolean {
  return item.type !== undefined || parseNumeric(item.text) !== undefined || /^(true|false|null)$/i.test(item.text)
}

/** One test for each listed value, for `hasAll`. */
export function buildEach(operand: Operand): readonly ((element: unknown) => boolean)[] | WrongValue {
  const items = normaliseList(operand)
  return items instanceof WrongValue ? items : items.map(item => matcherOf(item, operand))
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
    return operand.ignoreCase ? element => fold(element) === text : element => element === text
  }
  if (operand.field.kind.channel === 'json') return () => false
  if (scalar.type === 'boolean') return element => element === scalar.text
  const number = parseNumeric(scalar.text)
  return element => {
    const spelled = parseNumeric(element)
    return isNumeric(spelled) && equalNumbers(spelled, number)
  }
}
