/** Reads escapes by SIMD: what stands between them is copied, sixteen bytes at a time, and the short ones of JSON are read with it. */
import { type EscapeSyntax, jsonEscapes, shortEscapes, writeUnit } from './escapes.ts'
import {
  all,
  block,
  bytesOf,
  type CharCodes,
  compileSearch,
  from,
  get,
  i32,
  i32Const,
  type LoadedSearch,
  load,
  loaded,
  offsetBy,
  searched,
  set,
  signs,
  simd,
  tee,
  to,
  unit,
  vector,
  written,
} from './simd.ts'

/** Longest piece of a text that is read at once, bytes. */
export const longestPiece = 8_192

/** In the memory of searches, behind what they load: what was read, the table of short escapes, the number of bytes written. */
const results = 18_432
const table = 32_768
const count = table + shortEscapes.length
/** The table of a syntax without short escapes. */
const noTable = count + 4

const vectorBytes = 16

const advance = (bytes: CharCodes): CharCodes => [
  ...[...get(from), ...bytes, i32.add, ...set(from)],
  ...[...get(written), ...bytes, i32.add, ...set(written)],
]
const isBeforeEnd: CharCodes = [...get(from), ...get(to), i32.less]
const finish: CharCodes = [...i32Const(0), ...get(written), i32.store, ...offsetBy(count), ...get(from)]

/** Goes on from `from` up to `to`, or to an escape of another kind; returns where it ended. */
const readCode = (sign: number, shortTable: number): CharCodes => [
  ...[...i32Const(0), i32.load, ...offsetBy(count), ...set(written), block.loop, block.empty],
  ...[...get(written), ...load(0), ...tee(loaded), ...simd(vector.store), ...offsetBy(results)],
  ...[...get(loaded), ...bytesOf(all(sign)), ...simd(vector.equal), ...simd(vector.bitmask), ...tee(signs)],
  // A branch that is mostly foreseen costs less than to wait for the number of bytes before the next sign.
  ...[i32.isZero, block.if, block.empty, ...advance(i32Const(vectorBytes)), ...isBeforeEnd, block.branchIf, 1],
  ...[block.else, ...get(signs), i32.trailingZeros, ...set(signs), ...advance(get(signs))],
  ...[...isBeforeEnd, block.if, block.empty],
  ...[...get(from), i32.loadByte, ...offsetBy(1), i32.loadByte, ...offsetBy(shortTable), ...tee(unit)],
  ...[block.if, block.empty, ...get(written), ...get(unit), i32.storeByte, ...offsetBy(results)],
  ...[...get(written), ...i32Const(1), i32.add, ...set(written), ...get(from), ...i32Const(2), i32.add, ...set(from)],
  ...[...isBeforeEnd, block.branchIf, 3, ...finish, block.return, block.end, block.end, block.end, block.end],
  // What was copied of the bytes behind `to` does not count.
  ...[...get(to), ...get(from), i32.less, block.if, block.empty, ...get(written), ...get(to), ...get(from), i32.minus],
  ...[i32.add, ...set(written), ...get(to), ...set(from), block.end, ...finish, block.end],
]

/** A piece of a text while its escapes are read. There is one at a time, as all searches use the same memory. */
export class UnescapedPiece {
  readonly #search: LoadedSearch
  #from = 0

  constructor(search: LoadedSearch) {
    this.#search = search
  }

  begin(bytes: Buffer, from: number, to: number): void {
    this.#search.load(bytes, from, to)
    this.#from = from
    searched.writeUInt32LE(0, count)
  }

  /** Reads on to the next escape that is not short, or is none, or to `to`, or to the end of an escape there. */
  read(from: number, to: number): number {
    return this.#from + this.#search.find(from - this.#from, to - this.#from)
  }

  /** Writes what such an escape stands for. */
  write(unit: number, length: number): void {
    const size = searched.readUInt32LE(count)
    searched.writeUInt32LE(size + writeUnit(searched, results + size, unit, length), count)
  }

  /** Copies what was read; returns the number of bytes. */
  copyTo(target: Buffer, at: number): number {
    return searched.copy(target, at, results, results + searched.readUInt32LE(count))
  }
}

/** @returns undefined where there is no WebAssembly */
export function openUnescapedPiece(syntax: EscapeSyntax): UnescapedPiece | undefined {
  const search = compileSearch(() => readCode(syntax.sign, syntax === jsonEscapes ? table : noTable))
  if (search === undefined) return undefined
  searched.set(shortEscapes, table)
  return new UnescapedPiece(search)
}
