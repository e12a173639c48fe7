/**
 * What a text says once its escapes are read. JSON writes a line break as `\n`, a form as `%0A`: as written, a letter stands
 * before the key behind it, and no token begins there.
 */
import type { Budget, Work } from '../values/work.ts'
import { nextByte, type Text } from './bytes.ts'
import { type EscapeSyntax, jsonEscapes, percentEscapes } from './escapes.ts'

/** JSON in a string of JSON is read to this depth, such as the arguments of a tool call in a chat. */
const json = [jsonEscapes, jsonEscapes, jsonEscapes]

/**
 * Which readings of a text are searched: as it is written, with its escapes read, or both. JSON is searched with its
 * escapes read, which holds all that it says, also what spans two members. Other text may be anything: a form, a URL, or
 * JSON after all.
 */
export type Escapes = 'kept' | 'read' | 'both'

const syntaxes: Readonly<Record<Escapes, readonly EscapeSyntax[]>> = {
  kept: [],
  read: json,
  both: [percentEscapes, ...json],
}

export interface Reading extends Text {
  /** The escapes that were read in the reading before this one; absent in the text as it is written. */
  readonly syntax?: EscapeSyntax
}

/** The readings of one text, each made when a search asks for it and shared by all searches. */
export class Readings {
  readonly #made: Reading[] = []
  /** The text whose escapes are read next, and which ones. */
  #last: Reading
  #syntaxes: readonly EscapeSyntax[]
  #unescaping: Unescaping | undefined

  constructor(text: Text, escapes: Escapes = 'both') {
    this.#last = text
    this.#syntaxes = syntaxes[escapes]
    if (escapes !== 'read') this.#made.push(text)
  }

  /** Makes the reading at a place, if there is one; false when the budget was spent before that was known. */
  make(place: number, budget: Budget): boolean {
    while (place >= this.#made.length) {
      const [syntax, ...others] = this.#syntaxes
      if (syntax === undefined) return true
      this.#unescaping ??= new Unescaping(this.#last, syntax)
      if (!this.#unescaping.advance(budget)) return false
      const { result } = this.#unescaping
      this.#unescaping = undefined
      this.#syntaxes = result === undefined && syntax === jsonEscapes ? [] : others
      this.#last = result ?? this.#last
      if (result !== undefined || this.#made.length === 0) this.#made.push(this.#last)
    }
    return true
  }

  /** The reading at a place that was made before; undefined behind the last one. */
  at(place: number): Reading | undefined {
    return this.#made[place]
  }
}

/** Bytes behind an escape that a loop copies before it looks for the next escape at once. */
const shortRun = 64

/** Reads the escapes of a text once, from left to right. */
class Unescaping implements Work {
  readonly #text: Text
  readonly #syntax: EscapeSyntax
  /** Made at the first escape. */
  #target: Buffer | undefined
  /** What stands before is read, and written up to `#to` of the target. */
  #at = 0
  #to = 0

  constructor(text: Text, syntax: EscapeSyntax) {
    this.#text = text
    this.#syntax = syntax
  }

  /** Undefined for a text without escapes. */
  get result(): Reading | undefined {
    const syntax = this.#syntax
    return this.#target && { bytes: this.#target.subarray(0, this.#to), utf8: this.#text.utf8, syntax }
  }

  advance(budget: Budget): boolean {
    const { bytes } = this.#text
    while (this.#target === undefined) {
      if (this.#at >= bytes.length) return true
      if (budget.left <= 0) return false
      const sign = nextByte(bytes, this.#syntax.sign, this.#at)
      budget.left -= stepsOfRun(sign - this.#at)
      if (sign < bytes.length && this.#syntax.unitAt(bytes, sign) >= 0) this.#begin(sign)
      else this.#at = sign + 1
    }
    return this.#write(this.#target, budget)
  }

  /** Text without escapes needs no copy. */
  #begin(sign: number): void {
    this.#target = Buffer.allocUnsafe(this.#text.bytes.length)
    this.#at = 0
    if (this.#syntax.space >= 0) return
    this.#text.bytes.copy(this.#target, 0, 0, sign)
    this.#at = sign
    this.#to = sign
  }

  #write(target: Buffer, budget: Budget): boolean {
    const { bytes, utf8 } = this.#text
    const syntax = this.#syntax
    const { sign, space } = syntax
    let { left } = budget
    let at = this.#at
    let to = this.#to
    while (at < bytes.length && left > 0) {
      const start = at
      const end = Math.min(bytes.length, at + shortRun)
      for (; at < end; at++) {
        const code = bytes[at]!
        if (code === sign) break
        target[to++] = code === space ? 32 : code
      }
      if (at === end && space < 0) {
        const next = bytes.indexOf(sign, end)
        at = next < 0 ? bytes.length : next
        bytes.copy(target, to, end, at)
        to += at - end
      }
      left -= stepsOfRun(at - start)
      if (bytes[at] !== sign) continue
      const unit = syntax.unitAt(bytes, at)
      to += writeUnit(target, to, unit < 0 ? sign : unit, syntax.sizeOf(unit, utf8))
      at += unit < 0 ? 1 : syntax.lengthAt(bytes, at)
    }
    budget.left = left
    this.#at = at
    this.#to = to
    return at === bytes.length
  }
}

/** Steps of reading one escape and the run of other bytes before it, most of which is copied at once. */
const stepsOfRun = (length: number): number => 2 + (Math.min(length, shortRun) >> 4) + (length >> 8)

/** Writes a unit; returns the number of bytes. */
function writeUnit(target: Buffer, to: number, unit: number, length: number): number {
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
 * Where places of a reading stand in the text whose escapes it has read; what an escape stands for is at its sign. Yields
 * between pieces of the text.
 *
 * @param places in order
 */
export function* writtenPlaces(
  { bytes, utf8 }: Text,
  syntax: EscapeSyntax,
  places: Uint32Array,
): Generator<void, Map<number, number>, void> {
  const written = new Map<number, number>()
  let next = 0
  let looked = 0
  /** How much further a place stands in the text than in the reading. */
  let shift = 0
  for (let at = 0; next < places.length; ) {
    const sign = nextByte(bytes, syntax.sign, at)
    looked += sign + 1 - at
    if (looked >= pieceBytes) {
      yield
      looked = 0
    }
    const unit = sign === bytes.length ? 0 : syntax.unitAt(bytes, sign)
    at = sign + 1
    if (unit < 0) continue
    for (; next < places.length && places[next]! + shift <= sign; next++)
      written.set(places[next]!, places[next]! + shift)
    const end = sign - shift + syntax.sizeOf(unit, utf8)
    for (; next < places.length && places[next]! < end; next++) written.set(places[next]!, sign)
    at = sign + syntax.lengthAt(bytes, sign)
    shift = at - end
  }
  return written
}
