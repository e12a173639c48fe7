/**
 * Searches by the SIMD instructions of WebAssembly, which compare sixteen bytes at a time: three times as fast as a loop in
 * JavaScript. The functions are short, so their instructions are written as bytes.
 */

/** Bytes after those of a search that it reads as well. */
const bytesBehind = 80

/** By opcode (WebAssembly core specification, binary format). */
export const block = {
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  end: 0x0b,
  branchIf: 0x0d,
  return: 0x0f,
  empty: 0x40,
}
export const i32 = {
  ...{
    type: 0x7f,
    isZero: 0x45,
    less: 0x49,
    trailingZeros: 0x68,
    add: 0x6a,
    minus: 0x6b,
    shl: 0x74,
    or: 0x72,
    fromI64: 0xa7,
  },
  ...{ load: 0x28, loadByte: 0x2d, store: 0x36, storeByte: 0x3a },
}
export const i64 = { type: 0x7e, trailingZeros: 0x7a, and: 0x83, or: 0x84, shl: 0x86, shiftRight: 0x88, fromI32: 0xad }
export const select = 0x1b
const vectorType = 0x7b
export const vector = {
  ...{
    load: 0,
    store: 11,
    constant: 12,
    swizzle: 0x100,
    equal: 0x23,
    notEqual: 0x24,
    lessOrEqual: 0x2a,
    and: 78,
    andNot: 79,
    or: 80,
    anyTrue: 83,
  },
  ...{ greater: 0x27, equalOf4: 0x37, bitmask: 0x64, narrow2: 0x65, minus: 0x71, narrow4: 0x85, shiftRight: 0x8d },
}

export type CharCodes = readonly number[]

const unsigned = (value: number): CharCodes => (value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >> 7)])
const counted = (items: readonly CharCodes[]): CharCodes => [...unsigned(items.length), ...items.flat()]
const section = (id: number, content: CharCodes): CharCodes => [id, ...unsigned(content.length), ...content]
export const simd = (op: number): CharCodes => [0xfd, ...unsigned(op)]
export const get = (local: number): CharCodes => [0x20, local]
export const set = (local: number): CharCodes => [0x21, local]
export const tee = (local: number): CharCodes => [0x22, local]
/** Only for numbers below 8,192, which take two bytes at most. */
export const i32Const = (value: number): CharCodes =>
  value < 64 ? [0x41, value] : [0x41, (value & 127) | 128, value >> 7]
/** The place that a load or store adds to the one it is given; nothing needs to be aligned. */
export const offsetBy = (offset: number): CharCodes => [0, ...unsigned(offset)]
export const i64Const = (value: number): CharCodes => [0x42, value]

const nibbles = Array.from({ length: 16 }, (_, nibble) => nibble)
export const nibblesOf = (value: (nibble: number) => number): CharCodes => nibbles.map(value)
export const all = (value: number): CharCodes => nibblesOf(() => value)

/** Local variables: the two parameters, then words of 64 bits, vectors and words of 32 bits, and constants. */
export const from = 0
export const to = 1
export const current = 2
export const next = 3
export const pair = 4
export const loaded = 5
export const classes = 6
export const written = 7
export const signs = 8
export const unit = 9
const firstConstant = 10

/** Constants of the search that is being compiled. V8 makes a constant again at each use, which takes longer than what uses it. */
let constants: CharCodes[] = []

/** A constant of sixteen bytes, which is made before the search begins. */
export function bytesOf(values: CharCodes): CharCodes {
  const known = constants.findIndex(one => one.every((value, at) => value === values[at]))
  return get(firstConstant + (known < 0 ? constants.push(values) - 1 : known))
}

const makeConstants = (): CharCodes =>
  constants.flatMap((values, at) => [...simd(vector.constant), ...values, ...set(firstConstant + at)])

/** The sixteen bytes from a place on. */
export const load = (offset: number): CharCodes => [...get(from), ...simd(vector.load), ...offsetBy(offset)]

/** Of each of sixteen bytes, the bits that its low half has in one table and its high half in the other. */
export const lookUp = (low: CharCodes, high: CharCodes, offset: number): CharCodes => [
  ...[...bytesOf(low), ...load(offset), ...tee(loaded)],
  ...[...bytesOf(all(15)), ...simd(vector.and), ...simd(vector.swizzle)],
  ...[...bytesOf(high), ...get(loaded), ...i32Const(4), ...simd(vector.shiftRight)],
  ...[...bytesOf(all(15)), ...simd(vector.and), ...simd(vector.swizzle)],
  ...simd(vector.and),
]

/**
 * Which of sixteen bytes are in the set: all bits of those are set. The high half of a byte selects one bit, the low half a
 * byte that has the bits of all high halves with which it is in the set.
 */
export function membership(chars: Uint8Array, offset: number): CharCodes {
  const low = nibblesOf(nibble => nibbles.reduce((bits, high) => bits | (chars[high * 16 + nibble]! << high), 0) & 255)
  const high = nibblesOf(nibble => (nibble < 8 ? 1 << nibble : 0))
  return [...lookUp(low, high, offset), ...bytesOf(all(0)), ...simd(vector.notEqual)]
}

/** The end of a loop, and of the code: goes on with the next bytes, so many at a time, or ends at `to`. */
export const goOnBy = (bytes: number): CharCodes => [
  ...[...get(from), ...i32Const(bytes), i32.add, ...tee(from)],
  ...[...get(to), i32.less, block.branchIf, 0, block.end, ...get(to), block.end],
]

function moduleOf(write: () => CharCodes): Uint8Array<ArrayBuffer> {
  constants = []
  const code = write()
  const locals = counted([
    [3, i64.type],
    [2, vectorType],
    [3, i32.type],
    [constants.length, vectorType],
  ])
  const body = [...locals, ...makeConstants(), ...code]
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
export const searched = Buffer.from(memory?.buffer ?? new ArrayBuffer(0))

function openMemory(): Memory | undefined {
  try {
    return new WebAssembly.Memory({ initial: 1, maximum: 1 })
  } catch {
    return undefined
  }
}

/** A search over bytes that were loaded before. */
export interface LoadedSearch {
  /** Loads the bytes from `from` on, and some behind `to`; at most 16,000 of them. */
  load(bytes: Buffer, from: number, to: number): void
  /** The place that the code finds. Both places are counted from the first byte that was loaded. */
  find(from: number, to: number): number
}

/** @param code writes it; @returns undefined where there is no WebAssembly */
export function compileSearch(code: () => CharCodes): LoadedSearch | undefined {
  if (memory === undefined) return undefined
  const module = new WebAssembly.Module(moduleOf(code))
  const { exports } = new WebAssembly.Instance(module, { f: { f: memory } })
  return {
    load(bytes, from, to) {
      const read = to - from + bytesBehind
      const copied = bytes.copy(searched, 0, from, Math.min(from + read, bytes.length))
      if (copied < read) searched.fill(0, copied, read)
    },
    // The module was made above, and exports this function alone.
    find: exports['f'] as LoadedSearch['find'],
  }
}
