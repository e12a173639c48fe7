import { LongNumber, numericKey, parseNumeric } from '../../values/numbers.ts'
import { foldValue } from './folding.ts'
import { fold, type Operand, type Scalar } from './values.ts'

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
