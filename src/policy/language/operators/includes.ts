import { charge, resume } from '../../turns/evaluation.ts'
import { type Budget, stepsOfText, type Work } from '../../values/work.ts'
import type { TextTest } from './patterns.ts'

/** String.includes may compare the whole piece at each place. So many comparisons take some milliseconds. */
const maxComparisons = 4_194_304

/** Whether a piece occurs in a text. */
export function includes(piece: string): TextTest {
  let borders: Int32Array | undefined
  const key = {}
  return text => {
    if (text.length * piece.length <= maxComparisons) {
      charge(stepsOfText(text.length))
      return text.includes(piece)
    }
    borders ??= bordersOf(piece)
    const found = borders
    return resume(key, text, () => new Finding(piece, found, text)).isFound
  }
}

/** For each beginning of the piece: length of the longest shorter beginning that also ends it. */
function bordersOf(piece: string): Int32Array {
  const borders = new Int32Array(piece.length)
  let length = 0
  for (let at = 1; at < piece.length; at++) {
    while (length > 0 && piece.charCodeAt(at) !== piece.charCodeAt(length)) length = borders[length - 1]!
    if (piece.charCodeAt(at) === piece.charCodeAt(length)) length++
    borders[at] = length
  }
  return borders
}

const charactersPerStep = 8

/** Linear search (Knuth, Morris, Pratt). */
class Finding implements Work {
  isFound = false
  readonly #piece: string
  readonly #borders: Int32Array
  readonly #text: string
  #at = 0
  #matched = 0

  constructor(piece: string, borders: Int32Array, text: string) {
    this.#piece = piece
    this.#borders = borders
    this.#text = text
  }

  advance(budget: Budget): boolean {
    if (budget.left <= 0) return false
    const piece = this.#piece
    const borders = this.#borders
    const text = this.#text
    const from = this.#at
    const end = Math.min(text.length, from + budget.left * charactersPerStep)
    let matched = this.#matched
    let at = from
    for (; at < end && matched < piece.length; at++) {
      const code = text.charCodeAt(at)
      while (matched > 0 && piece.charCodeAt(matched) !== code) matched = borders[matched - 1]!
      if (piece.charCodeAt(matched) === code) matched++
    }
    this.#at = at
    this.#matched = matched
    this.isFound = matched === piece.length
    budget.left -= stepsOfText(at - from)
    return this.isFound || at === text.length
  }
}
