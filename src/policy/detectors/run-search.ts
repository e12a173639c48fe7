/** A search for runs of characters by SIMD. */
import {
  block,
  type CharCodes,
  compileSearch,
  current,
  from,
  get,
  goOnBy,
  i32,
  i32Const,
  i64,
  i64Const,
  membership,
  next,
  pair,
  select,
  set,
  simd,
  tee,
  to,
  vector,
} from './simd.ts'

/** Maximum of bytes in which one search looks for the beginning of a run. */
export const searchedBytes = 4_096

/** Which of 32 bytes are in the set, as bits. */
const word = (chars: Uint8Array, offset: number): CharCodes => [
  ...[...membership(chars, offset), ...simd(vector.bitmask)],
  ...[...membership(chars, offset + 16), ...simd(vector.bitmask)],
  ...[...i32Const(16), i32.shl, i32.or, i64.fromI32],
]

/** Leaves the bits of `pair` where a run begins: those that `least` - 1 others follow. */
export function keepRuns(least: number): CharCodes {
  const code: number[] = []
  for (let length = 1; length < least; ) {
    const shift = Math.min(length, least - length)
    code.push(...get(pair), ...get(pair), ...i64Const(shift), i64.shiftRight, i64.and, ...set(pair))
    length += shift
  }
  return code
}

/** The first place of a run from `from` on and before `to`, or `to`; 32 places at a time. */
export const searchCode = (chars: Uint8Array, least: number): CharCodes => [
  ...[...word(chars, 0), ...set(current)],
  ...[block.loop, block.empty, ...word(chars, 32), ...set(next)],
  ...[...get(current), ...get(next), ...i64Const(32), i64.shl, i64.or, ...set(pair), ...keepRuns(least)],
  ...[...get(pair), i32.fromI64, block.if, block.empty],
  ...[...get(from), ...get(pair), i64.trailingZeros, i32.fromI64, i32.add, ...tee(from), ...get(to)],
  ...[...get(from), ...get(to), i32.less, select, block.return, block.end],
  ...[...get(next), ...set(current), ...goOnBy(32)],
]

/** The first place from `from` on and before `to`, at most `searchedBytes` later, where a run begins, or `to`. */
export type RunSearch = (bytes: Buffer, from: number, to: number) => number

/**
 * @param chars the characters of a run: 1 for each, none of them above 127, and not NUL
 * @param least 2 to 33 of them
 * @returns undefined where there is no WebAssembly
 */
export function compileRunSearch(chars: Uint8Array, least: number): RunSearch | undefined {
  const search = compileSearch(() => searchCode(chars, least))
  if (search === undefined) return undefined
  return (bytes, from, to) => {
    search.load(bytes, from, to)
    return from + search.find(0, to - from)
  }
}
