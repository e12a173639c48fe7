/**
 * A search for runs of characters by the SIMD instructions of WebAssembly, which compare sixteen bytes at a time: three
 * times as fast as a loop in JavaScript. The function is short, so its instructions stand here as bytes.
 */

/** Maximum of bytes in which one search looks for the beginning of a run. */
export const searchedBytes = 4_096
/** Bytes after these that the search reads as well. */
const bytesBehind = 64

/** By opcode (WebAssembly core specification, binary format). */
const block = { loop: 0x03, if: 0x04, end: 0x0b, branchIf: 0x0d, return: 0x0f, empty: 0x40 }
const i32 = { type: 0x7f, less: 0x49, add: 0x6a, shl: 0x74, or: 0x72, fromI64: 0xa7 }
const i64 = { type: 0x7e, trailingZeros: 0x7a, and: 0x83, or: 0x84, shl: 0x86, shiftRight: 0x88, fromI32: 0xad }
const select = 0x1b
const vectorType = 0x7b
const vector = { load: 0, constant: 12, swizzle: 14, notEqual: 0x24, and: 78, bitmask: 0x64, shiftRight: 0x6d }

type CharCodes = readonly number[]

const unsigned = (value: number): CharCodes => (value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >> 7)])
const counted = (items: readonly CharCodes[]): CharCodes => [...unsigned(items.length), ...items.flat()]
const section = (id: number, content: CharCodes): CharCodes => [id, ...unsigned(content.length), ...content]
const simd = (op: number): CharCodes => [0xfd, ...unsigned(op)]
const bytesOf = (values: CharCodes): CharCodes => [...simd(vector.constant), ...values]
const get = (local: number): CharCodes => [0x20, local]
const set = (local: number): CharCodes => [0x21, local]
const tee = (local: number): CharCodes => [0x22, local]
/** Only for numbers below 64, which take one byte. */
const i32Const = (value: number): CharCodes => [0x41, value]
const i64Const = (value: number): CharCodes => [0x42, value]

const nibbles = Array.from({ length: 16 }, (_, nibble) => nibble)
const all = (value: number): CharCodes => nibbles.map(() => value)

/** Local variables: the two parameters, then words of 32 and 64 bits that say which bytes are in the set. */
const from = 0
const to = 1
const current = 2
const next = 3
const pair = 4
const loaded = 5

/**
 * Which of sixteen bytes are in the set, as bits. The high half of a byte selects one bit, the low half a byte that has
 * the bits of all high halves with which it is in the set.
 */
function membership(chars: Uint8Array, offset: number): CharCodes {
  const low = nibbles.map(
    nibble => nibbles.reduce((bits, high) => bits | (chars[high * 16 + nibble]! << high), 0) & 255,
  )
  const high = nibbles.map(nibble => (nibble < 8 ? 1 << nibble : 0))
  return [
    ...[...bytesOf(low), ...get(from), ...simd(vector.load), 0, ...unsigned(offset), ...tee(loaded)],
    ...[...bytesOf(all(15)), ...simd(vector.and), ...simd(vector.swizzle)],
    ...[...bytesOf(high), ...get(loaded), ...i32Const(4), ...simd(vector.shiftRight), ...simd(vector.swizzle)],
    ...[...simd(vector.and), ...bytesOf(all(0)), ...simd(vector.notEqual), ...simd(vector.bitmask)],
  ]
}

/** The same of 32 bytes. */
const word = (chars: Uint8Array, offset: number): CharCodes => [
  ...[...membership(chars, offset), ...membership(chars, offset + 16)],
  ...[...i32Const(16), i32.shl, i32.or, i64.fromI32],
]

/** Leaves the bits of `pair` where a run begins: those that `least` - 1 others follow. */
function keepRuns(least: number): CharCodes {
  const code: number[] = []
  for (let length = 1; length < least; ) {
    const shift = Math.min(length, least - length)
    code.push(...get(pair), ...get(pair), ...i64Const(shift), i64.shiftRight, i64.and, ...set(pair))
    length += shift
  }
  return code
}

/** The first place of a run from `from` on and before `to`, or `to`; 32 places at a time. */
const searchCode = (chars: Uint8Array, least: number): CharCodes => [
  ...[...word(chars, 0), ...set(current)],
  ...[block.loop, block.empty, ...word(chars, 32), ...set(next)],
  ...[...get(current), ...get(next), ...i64Const(32), i64.shl, i64.or, ...set(pair), ...keepRuns(least)],
  ...[...get(pair), i32.fromI64, block.if, block.empty],
  ...[...get(from), ...get(pair), i64.trailingZeros, i32.fromI64, i32.add, ...tee(from), ...get(to)],
  ...[...get(from), ...get(to), i32.less, select, block.return, block.end],
  ...[...get(next), ...set(current), ...get(from), ...i32Const(32), i32.add, ...tee(from)],
  ...[...get(to), i32.less, block.branchIf, 0, block.end, ...get(to), block.end],
]

function moduleOf(code: CharCodes): Uint8Array<ArrayBuffer> {
  const locals = counted([i64.type, i64.type, i64.type, vectorType].map(type => [1, type]))
  const body = [...locals, ...code]
  const magic = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
  const functionType = [0x60, ...counted([[i32.type], [i32.type]]), ...counted([[i32.type]])]
  const name = [1, 0x66]
  return Uint8Array.from([
    ...magic,
    ...section(1, counted([functionType])),
    ...section(2, counted([[...name, ...name, 2, 0, 1]])),
    ...section(3, counted([[0]])),
    ...section(7, counted([[...name, 0, 0]])),
    ...section(10, counted([[...unsigned(body.length), ...body]])),
  ])
}

interface Memory {
  readonly buffer: ArrayBuffer
}

interface Instance {
  readonly exports: Readonly<Record<string, unknown>>
}

/** The part of the global that is used: TypeScript declares it only among the types of browsers. */
declare const WebAssembly: {
  readonly Memory: new (size: { initial: number; maximum: number }) => Memory
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Instance: new (module: object, imports: object) => Instance
}

/**
 * The bytes to search. All searches of this thread share them, because each ends before the next one begins. Undefined
 * without WebAssembly (`node --jitless`): then a loop searches all bytes.
 */
const memory = openMemory()
const searched = Buffer.from(memory?.buffer ?? new ArrayBuffer(0))

function openMemory(): Memory | undefined {
  try {
    return new WebAssembly.Memory({ initial: 1, maximum: 1 })
  } catch {
    return undefined
  }
}

/** The first place from `from` on and before `to`, at most `searchedBytes` later, where a run begins, or `to`. */
export type RunSearch = (bytes: Buffer, from: number, to: number) => number

/**
 * @param chars the characters of a run: 1 for each, none of them above 127, and not NUL
 * @param least 2 to 33 of them
 * @returns undefined where there is no WebAssembly
 */
export function compileRunSearch(chars: Uint8Array, least: number): RunSearch | undefined {
  if (memory === undefined) return undefined
  const module = new WebAssembly.Module(moduleOf(searchCode(chars, least)))
  const { exports } = new WebAssembly.Instance(module, { f: { f: memory } })
  // The module was made above, and exports this function alone.
  const search = exports['f'] as (from: number, to: number) => number
  return (bytes, from, to) => {
    const size = to - from
    const read = size + bytesBehind
    const copied = bytes.copy(searched, 0, from, Math.min(from + read, bytes.length))
    if (copied < read) searched.fill(0, copied, read)
    return from + search(0, size)
  }
}
