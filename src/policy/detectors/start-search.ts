/** Searches for the beginnings of tokens and telephone numbers by SIMD, in a long run of characters such as a picture in base64. */
import { charset, word } from './bytes.ts'
import {
  all,
  block,
  bytesOf,
  type CharCodes,
  classes,
  compileSearch,
  from,
  get,
  goOnBy,
  i32,
  type LoadedSearch,
  load,
  lookUp,
  membership,
  nibblesOf,
  select,
  simd,
  tee,
  to,
  vector,
} from './simd.ts'

/** Nothing but tokens begins behind these. */
export const plain = charset('A-Za-z0-9_/+-')

/** Those of them that end a word are from `+` to `/`. */
const border = { first: 0x2b, last: 0x2f }

/** Bits for each set of low halves of bytes, by the high halves that go with it. */
interface ClassBit {
  readonly rows: readonly number[]
  readonly set: Uint8Array
}

/** Five bits say that a character is plain, three that it may begin a token; the two rows of capitals share one of these. */
function classBits(first: Uint8Array): readonly ClassBit[] {
  const rowsOfPlain = [[2], [3], [4, 6], [5, 7], [5]]
  const underscore = plain.map((_, code) => (code === 0x5f ? 1 : 0))
  const letters = plain.map((isPlain, code) => (code === 0x5f ? 0 : isPlain))
  return [
    ...rowsOfPlain.map((rows, bit) => ({ rows, set: bit === 4 ? underscore : letters })),
    ...[[4, 5], [6], [7]].map(rows => ({ rows, set: first })),
  ]
}

/** Ends the search at the first place whose byte in `classes` is not zero, if that is before `to`. */
const endAtFirst: CharCodes = [
  ...[...get(from), ...get(classes), ...simd(vector.bitmask), i32.trailingZeros, i32.add, ...tee(from), ...get(to)],
  ...[...get(from), ...get(to), i32.less, select, block.return],
]
const isPlain = 0b0001_1111
const isFirst = 0b1110_0000

/**
 * The first place from `from` on and before `to` that is not plain, or at which a token may begin behind a border; else `to`.
 * The search reads the byte at a place as the one before it.
 */
function startCode(first: Uint8Array, second: Uint8Array): CharCodes {
  const bits = classBits(first)
  const isIn = ({ rows, set }: ClassBit, nibble: number) => rows.some(row => set[row * 16 + nibble] === 1)
  const sum = (holds: (bit: ClassBit) => boolean) => bits.reduce((all, bit, at) => all | (holds(bit) ? 1 << at : 0), 0)
  const low = nibblesOf(nibble => sum(bit => isIn(bit, nibble)))
  const high = nibblesOf(nibble => sum(({ rows }) => rows.includes(nibble)))
  const zero = bytesOf(all(0))
  return [
    ...[block.loop, block.empty],
    ...[...lookUp(low, high, 1), ...tee(classes)],
    ...[...bytesOf(all(isPlain)), ...simd(vector.and), ...zero, ...simd(vector.equal)],
    ...[...load(0), ...bytesOf(all(border.first)), ...simd(vector.minus)],
    ...[...bytesOf(all(border.last - border.first)), ...simd(vector.lessOrEqual)],
    ...[...get(classes), ...bytesOf(all(isFirst)), ...simd(vector.and), ...zero, ...simd(vector.notEqual)],
    ...[...simd(vector.and), ...membership(second, 2), ...simd(vector.and), ...simd(vector.or)],
    ...[...tee(classes), ...simd(vector.anyTrue), block.if, block.empty, ...endAtFirst, block.end, ...goOnBy(16)],
  ]
}

/** Some digits are not zero. */
const leading = { first: 0x31, last: 0x39 }

/** The first place of a plus sign between another character than those of words and a digit that is not zero; else `to`. */
const plusCode = (): CharCodes => [
  ...[block.loop, block.empty, ...load(1), ...bytesOf(all(0x2b)), ...simd(vector.equal)],
  ...[...load(2), ...bytesOf(all(leading.first)), ...simd(vector.minus)],
  ...[...bytesOf(all(leading.last - leading.first)), ...simd(vector.lessOrEqual), ...simd(vector.and)],
  ...[...tee(classes), ...simd(vector.anyTrue), block.if, block.empty],
  ...[...get(classes), ...membership(word, 0), ...simd(vector.andNot)],
  ...[
    ...tee(classes),
    ...simd(vector.anyTrue),
    block.if,
    block.empty,
    ...endAtFirst,
    block.end,
    block.end,
    ...goOnBy(16),
  ],
]

/** Bytes that are loaded at a time. */
const window = 4_096

export class StartSearch {
  readonly #search: LoadedSearch
  /** The part of the text that is loaded. */
  #from = 0
  #end = 0

  constructor(search: LoadedSearch) {
    this.#search = search
  }

  /** Call it before the first `next` of a search: other searches use the same memory. */
  begin(): void {
    this.#end = 0
  }

  /** The first place from `from` on and before `to` at which to look; else `to`. Both are the same or grow. */
  next(bytes: Buffer, from: number, to: number): number {
    for (let at = from; ; ) {
      if (at >= this.#end) {
        this.#from = at
        this.#end = Math.min(to, at + window)
        this.#search.load(bytes, at - 1, this.#end)
      }
      at = this.#from + this.#search.find(at - this.#from, this.#end - this.#from)
      if (at < this.#end || at === to) return at
    }
  }
}

/**
 * @param first of the two characters with which tokens begin: letters
 * @returns undefined where there is no WebAssembly
 */
export function compileStartSearch(first: Uint8Array, second: Uint8Array): StartSearch | undefined {
  const search = compileSearch(() => startCode(first, second))
  return search && new StartSearch(search)
}

/** @returns undefined where there is no WebAssembly */
export function compilePlusSearch(): StartSearch | undefined {
  const search = compileSearch(plusCode)
  return search && new StartSearch(search)
}
