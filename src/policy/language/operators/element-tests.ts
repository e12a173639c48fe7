/** Tests of one element: whether it equals a value or is in a list, and tests of a text. */

import { AddressRanges } from '../../../base/address.ts'
import { matchesAnyHost, parseHostPattern } from '../../../base/host.ts'
import { didYouMean } from '../../../base/nearest.ts'
import { compileDetectors, type DetectorSearch } from '../../detectors/detectors.ts'
import { charge, chargeElement, findIn, progressOf, resume } from '../../turns/evaluation.ts'
import { LongNumber, numericKey, parseNumeric } from '../../values/numbers.ts'
import { Several } from '../../values/path.ts'
import { False, missing, True, type Truth, Unreadable } from '../../values/truth.ts'
import { limits } from '../model.ts'
import { ConditionError } from '../problems.ts'
import { foldValue } from './folding.ts'
import { includes } from './includes.ts'
import { compileGlob, compilePathPattern, type TextTest } from './patterns.ts'
import { compileRegex } from './regex.ts'
import { fold, ignoresCase, type Operand, readList, readWords, type Scalar } from './values.ts'

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

const none: readonly number[] = []

/**
 * Finds the listed values that an element equals, in a time that does not grow with the list.
 *
 * A string equals the same text; a number the number that the value spells; booleans and null their words. A value
 * written as a number or boolean equals that type alone, except in fields that carry text, where it equals its spelling.
 */
export class ListLookup {
  readonly #ignoreCase: boolean
  readonly #isText: boolean
  /** Places of values written as text, by the text. */
  readonly #texts = new Map<string, number[]>()
  /** Places of values that spell a number, by its key. */
  readonly #numbers = new Map<number | string, number[]>()
  /** Places of values written as a number, by its key, and as a boolean, by its word. */
  readonly #typed = new Map<number | string, number[]>()

  constructor(items: readonly Scalar[], { field, ignoreCase }: Operand) {
    this.#ignoreCase = ignoreCase
    this.#isText = field.kind.channel === 'text'
    for (const [place, { text, type }] of items.entries()) {
      if (type === undefined) add(this.#texts, ignoreCase ? fold(text) : text, place)
      const number = type === 'boolean' ? undefined : parseNumeric(text)
      if (number !== undefined) add(this.#numbers, numericKey(number), place)
      if (type === 'boolean') add(this.#typed, text, place)
      else if (type === 'number' && number !== undefined) add(this.#typed, numericKey(number), place)
    }
  }

  has(element: unknown): boolean {
    return this.find(element).length > 0
  }

  /** Places in the list of the values that equal an element. */
  find(element: unknown): readonly number[] {
    if (typeof element === 'string') return this.#findText(element)
    if (typeof element === 'number' || element instanceof LongNumber)
      return this.#numbers.get(numericKey(element)) ?? none
    if (typeof element === 'boolean') return both(this.#texts.get(String(element)), this.#typed.get(String(element)))
    return element === null ? (this.#texts.get('null') ?? none) : none
  }

  #findText(element: string): readonly number[] {
    const found = this.#texts.get(this.#ignoreCase ? foldValue(element) : element)
    if (!this.#isText || this.#typed.size === 0) return found ?? none
    const number = parseNumeric(element)
    return both(found, this.#typed.get(number === undefined ? element : numericKey(number)))
  }
}

function add<K>(places: Map<K, number[]>, key: K, place: number): void {
  const known = places.get(key)
  if (known === undefined) places.set(key, [place])
  else known.push(place)
}

function both(left: readonly number[] | undefined, right: readonly number[] | undefined): readonly number[] {
  if (left === undefined) return right ?? none
  return right === undefined ? left : [...left, ...right]
}

/** Longest text that a pattern is run on, UTF-16 units; longer is unreadable. */
const scanLimit = 65_536
/** Steps that a search with a pattern takes on the shortest text. */
const stepsOfSearch = 32
/** Maximum of steps of one glob: pattern length times text length. */
const globBudget = 64 * scanLimit

/** Text of a string, number or boolean; null has none; objects and lists cannot be compared as text. */
function onText(element: unknown, test: (text: string) => Truth): Truth {
  if (typeof element === 'string') return test(element)
  if (typeof element === 'number' || typeof element === 'boolean' || element instanceof LongNumber) {
    return test(String(element))
  }
  return element === null ? False : Unreadable
}

function truthOf(value: boolean): Truth {
  return value ? True : False
}

export type PieceName = 'startsWith' | 'endsWith' | 'contains'

export function buildPiece(name: PieceName, operand: Operand): ElementTest {
  if (operand.value === '') throw new ConditionError(`${name} must have a value that is not empty`)
  const folded = ignoresCase(operand)
  const piece = folded ? fold(operand.value) : operand.value
  const holds = pieceTest(name, piece)
  return element => onText(element, text => truthOf(holds(folded ? foldValue(text) : text)))
}

function pieceTest(name: PieceName, piece: string): TextTest {
  if (name === 'startsWith') return text => text.startsWith(piece)
  return name === 'endsWith' ? text => text.endsWith(piece) : includes(piece)
}

export function buildLike(operand: Operand): ElementTest {
  checkPattern(operand.value)
  const folded = ignoresCase(operand)
  const glob = compileGlob(folded ? fold(operand.value) : operand.value)
  return element =>
    onText(element, text => {
      if (text.length * operand.value.length > globBudget) return Unreadable
      return truthOf(glob(folded ? foldValue(text) : text))
    })
}

export function buildMatches(operand: Operand): ElementTest {
  checkPattern(operand.value)
  const regex = compileRegex(operand.value, ignoresCase(operand))
  if (typeof regex === 'string') throw new ConditionError(regex)
  return element =>
    onText(element, text => {
      if (text.length > scanLimit) return Unreadable
      charge(stepsOfSearch)
      const { found } = resume(regex, text, () => regex.begin(text))
      return found === undefined ? Unreadable : truthOf(found)
    })
}

function checkPattern(pattern: string): void {
  if (pattern === '') throw new ConditionError('the pattern must not be empty')
  if (pattern.length > limits.regex) {
    throw new ConditionError(`a pattern must have at most ${limits.regex} characters`, 'E_LIMIT')
  }
}

export function buildPathMatches(operand: Operand): ElementTest {
  if (operand.field.text !== 'input.path') throw new ConditionError('pathMatches must be used on input.path')
  const tests = readWords(operand.value).map(word => {
    const test = compilePathPattern(operand.ignoreCase ? fold(word) : word)
    if (typeof test === 'string') throw new ConditionError(test)
    return test
  })
  return element => {
    const path = operand.ignoreCase ? fold(String(element)) : String(element)
    return truthOf(tests.some(test => test(path)))
  }
}

export function buildHostMatches(operand: Operand): ElementTest {
  const patterns = readWords(operand.value).map(word => {
    const pattern = parseHostPattern(word.toLowerCase())
    if (pattern === undefined)
      throw new ConditionError(`${JSON.stringify(word)} must be a host such as a.example or *.a.example`)
    return pattern
  })
  return element => truthOf(typeof element === 'string' && matchesAnyHost(patterns, element.toLowerCase()))
}

export function buildIpIn(operand: Operand): ElementTest {
  const ranges = new AddressRanges()
  for (const word of readWords(operand.value)) {
    if (!ranges.add(word)) throw new ConditionError(`${JSON.stringify(word)} must be an address or CIDR range`)
  }
  return element => truthOf(typeof element === 'string' && ranges.has(element))
}

/** The search for the detectors that a condition names. */
export function searchOf({ value }: Pick<Operand, 'value'>): DetectorSearch {
  const search = compileDetectors(readWords(value))
  if (typeof search === 'string') throw new ConditionError(search)
  return search
}

export function buildDetects(operand: Operand): ElementTest {
  const search = searchOf(operand)
  return element => onText(element, text => truthOf(findIn(search, text) !== undefined))
}
