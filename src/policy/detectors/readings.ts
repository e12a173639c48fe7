/**
 * What a text says once its escapes are read. JSON writes a line break as `\n` and any character as `\u0041`: as written,
 * `\nAKIA` has a letter before the key, and no token begins there.
 */
import type { Budget, Work } from '../values/work.ts'
import { nextByte, type Text } from './bytes.ts'

/** JSON in a string of JSON is read to this depth, such as the arguments of a tool call in a chat. */
const maxDepth = 3

/**
 * Which readings of a text are searched: as it is written, with its escapes read, or both. JSON is searched with its
 * escapes read, which holds all that it says, also what spans two members; other text may be no JSON at all.
 */
export type Escapes = 'kept' | 'read' | 'both'

/** The readings of one text, each made when a search asks for it and shared by all searches. */
export class Readings {
  readonly #made: Text[] = []
  /** The text whose escapes are read next; undefined when there are no more readings. */
  #next: Text | undefined
  #depth = 0
  #unescaping: Unescaping | undefined

  constructor(text: Text, escapes: Escapes = 'both') {
    if (escapes !== 'read') this.#made.push(text)
    if (escapes !== 'kept') this.#next = text
  }

  /** Makes the reading at a place, if there is one; false when the budget was spent before that was known. */
  make(place: number, budget: Budget): boolean {
    while (place >= this.#made.length && this.#next !== undefined) {
      this.#unescaping ??= new Unescaping(this.#next)
      if (!this.#unescaping.advance(budget)) return false
      const { result } = this.#unescaping
      this.#unescaping = undefined
      this.#depth++
      if (result !== undefined) this.#made.push(result)
      else if (this.#made.length === 0) this.#made.push(this.#next)
      this.#next = this.#depth < maxDepth ? result : undefined
    }
    return true
  }

  /** The reading at a place that was made before; undefined behind the last one. */
  at(place: number): Text | undefined {
    return this.#made[place]
  }
}

const backslash = 92
const letterU = 117
/** `\u0041` and `\n`, bytes. */
const longEscape = 6
const shortEscape = 2

/** By the character behind the backslash; 0 for one that makes no escape. */
const shortEscapes = Uint8Array.from({ length: 256 }, (_, code) => {
  const at = '"\\/bfnrt'.indexOf(String.fromCharCode(code))
  return at < 0 ? 0 : '"\\/\b\f\n\r\t'.charCodeAt(at)
})

const notHex = 16
const hexValues = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(value) ? notHex : value
})

/** What the escape at a backslash stands for: a UTF-16 unit, or -1 where there is no escape. */
function unitAt(bytes: Buffer, slash: number): number {
  const code = bytes[slash + 1] ?? 0
  if (code !== letterU) return shortEscapes[code] === 0 ? -1 : shortEscapes[code]!
  if (slash + longEscape > bytes.length) return -1
  let unit = 0
  for (let at = slash + shortEscape; at < slash + longEscape; at++) {
    const value = hexValues[bytes[at]!]!
    if (value === notHex) return -1
    unit = (unit << 4) | value
  }
  return unit
}

const escapeLength = (bytes: Buffer, slash: number): number => (bytes[slash + 1] === letterU ? longEscape : shortEscape)

/** Bytes that a UTF-16 unit takes. */
function unitLength(unit: number, utf8: boolean): number {
  if (unit < 0x80 || !utf8) return 1
  return unit < 0x800 ? 2 : 3
}

/** Bytes behind an escape that a loop copies before it looks for the next escape at once. */
const shortRun = 64

/** Reads the escapes of a text once, from left to right. */
class Unescaping implements Work {
  readonly #text: Text
  /** Made at the first escape. */
  #target: Buffer | undefined
  /** What stands before is read, and written up to `#to` of the target. */
  #at = 0
  #to = 0

  constructor(text: Text) {
    this.#text = text
  }

  /** Undefined for a text without escapes. */
  get result(): Text | undefined {
    return this.#target && { bytes: this.#target.subarray(0, this.#to), utf8: this.#text.utf8 }
  }

  advance(budget: Budget): boolean {
    const { bytes } = this.#text
    while (this.#target === undefined) {
      if (this.#at >= bytes.length) return true
      if (budget.left <= 0) return false
      const slash = nextByte(bytes, backslash, this.#at)
      budget.left -= stepsOfRun(slash - this.#at)
      if (slash < bytes.length && unitAt(bytes, slash) >= 0) this.#begin(slash)
      else this.#at = slash + 1
    }
    return this.#write(this.#target, budget)
  }

  /** Text without escapes needs no copy. */
  #begin(slash: number): void {
    this.#target = Buffer.allocUnsafe(this.#text.bytes.length)
    this.#text.bytes.copy(this.#target, 0, 0, slash)
    this.#at = slash
    this.#to = slash
  }

  #write(target: Buffer, budget: Budget): boolean {
    const { bytes, utf8 } = this.#text
    let { left } = budget
    let at = this.#at
    let to = this.#to
    while (at < bytes.length && left > 0) {
      const start = at
      const end = Math.min(bytes.length, at + shortRun)
      for (; at < end; at++) {
        const code = bytes[at]!
        if (code === backslash) break
        target[to++] = code
      }
      if (at === end) {
        const slash = bytes.indexOf(backslash, end)
        at = slash < 0 ? bytes.length : slash
        bytes.copy(target, to, end, at)
        to += at - end
      }
      left -= stepsOfRun(at - start)
      if (at === bytes.length) break
      const unit = unitAt(bytes, at)
      to += writeUnit(target, to, unit < 0 ? backslash : unit, utf8)
      at += unit < 0 ? 1 : escapeLength(bytes, at)
    }
    budget.left = left
    this.#at = at
    this.#to = to
    return at === bytes.length
  }
}

/** Steps of reading one escape and the run of other bytes before it, most of which is copied at once. */
const stepsOfRun = (length: number): number => 2 + (Math.min(length, shortRun) >> 4) + (length >> 8)

/** Writes a UTF-16 unit; returns the number of bytes. */
function writeUnit(target: Buffer, to: number, unit: number, utf8: boolean): number {
  const length = unitLength(unit, utf8)
  // No detector tells characters beyond Latin-1 from one another, but for white space; nor halves of pairs.
  if (length === 1) target[to] = Math.min(unit, 0xff)
  else writeWide(target, to, unit >= 0xd800 && unit <= 0xdfff ? 0xfffd : unit)
  return length
}

/** A UTF-16 unit above U+007F as UTF-8. */
function writeWide(target: Buffer, to: number, unit: number): void {
  const last = 0x80 | (unit & 0x3f)
  if (unit < 0x800) {
    target[to] = 0xc0 | (unit >> 6)
    target[to + 1] = last
    return
  }
  target[to] = 0xe0 | (unit >> 12)
  target[to + 1] = 0x80 | ((unit >> 6) & 0x3f)
  target[to + 2] = last
}

/** Bytes looked at between two turns. */
const pieceBytes = 16_384

/**
 * Where places of a reading stand in the text whose escapes it has read; what an escape stands for is at its backslash.
 * Yields between pieces of the text.
 *
 * @param places in order
 */
export function* writtenPlaces(text: Text, places: readonly number[]): Generator<void, Map<number, number>, void> {
  const { bytes, utf8 } = text
  const written = new Map<number, number>()
  let next = 0
  let looked = 0
  /** The same place as written and as read. */
  let from = 0
  let to = 0
  for (let at = 0; next < places.length; ) {
    const slash = nextByte(bytes, backslash, at)
    looked += slash + 1 - at
    if (looked >= pieceBytes) {
      yield
      looked = 0
    }
    const isEnd = slash === bytes.length
    const unit = isEnd ? -1 : unitAt(bytes, slash)
    at = slash + 1
    if (unit < 0 && !isEnd) continue
    const shift = from - to
    for (; next < places.length && places[next]! + shift <= slash; next++)
      written.set(places[next]!, places[next]! + shift)
    if (isEnd) break
    to = slash - shift + unitLength(unit, utf8)
    for (; next < places.length && places[next]! < to; next++) written.set(places[next]!, slash)
    from = slash + escapeLength(bytes, slash)
    at = from
  }
  return written
}
