/**
 * What a text says once its escapes are read. JSON writes a line break as `\n`, a form as `%0A`: as written, a letter stands
 * before the key behind it, and no token begins there.
 */
import type { Budget, Work } from '../values/work.ts'
import { nextByte, type Text } from './bytes.ts'
import { type EscapeSyntax, jsonEscapes, percentEscapes, percentSigns, writeUnit } from './escapes.ts'
import { longestPiece, openUnescapedPiece, type UnescapedPiece } from './short-escapes.ts'

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
  read: [...json, percentSigns],
  both: [percentEscapes, ...json],
}

export interface Reading extends Text {
  /** The escapes that were read in the reading before this one; absent in the text as it is written. */
  readonly syntax?: EscapeSyntax
  /** What the bytes are a part of, when another reading may use it later. */
  readonly memory?: Buffer
}

/** Shorter readings get memory from the pool of Node.js, bytes. */
const shortest = 4_096
/** The most memory that is kept while nothing uses it, bytes. */
const longestSpare = 1_310_720
/** Of a reading that was released. New memory costs the system more than it costs to fill it. */
let spare: Buffer | undefined

function takeMemory(bytes: number): Buffer {
  const memory = spare !== undefined && spare.length >= bytes ? spare : Buffer.allocUnsafeSlow(bytes)
  if (memory === spare) spare = undefined
  return memory
}

function giveMemory(memory: Buffer): void {
  if (memory.length <= longestSpare && memory.length > (spare?.length ?? 0)) spare = memory
}

/** The readings of one text, each made when a search asks for it and shared by all searches. */
export class Readings {
  readonly #text: Text
  readonly #escapes: Escapes
  #made: Reading[]
  /** The text whose escapes are read next, and which ones. */
  #last: Reading
  #syntaxes: readonly EscapeSyntax[]
  #unescaping: Unescaping | undefined

  constructor(text: Text, escapes: Escapes = 'both') {
    this.#text = text
    this.#escapes = escapes
    this.#last = text
    this.#syntaxes = syntaxes[escapes]
    this.#made = escapes === 'read' ? [] : [text]
  }

  /** Gives the memory of the readings back. A search that asks for them later has them made again. */
  release(): void {
    for (const { memory } of this.#made) if (memory !== undefined) giveMemory(memory)
    this.#last = this.#text
    this.#syntaxes = syntaxes[this.#escapes]
    this.#made = this.#escapes === 'read' ? [] : [this.#text]
    this.#unescaping = undefined
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
      const isPlain = result === undefined && syntax === jsonEscapes
      this.#syntaxes = isPlain ? others.slice(others.lastIndexOf(jsonEscapes) + 1) : others
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

const pieces = new Map([jsonEscapes, percentSigns].map(syntax => [syntax, openUnescapedPiece(syntax)]))

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
    const memory = this.#target
    if (memory === undefined) return undefined
    const reading = { bytes: memory.subarray(0, this.#to), utf8: this.#text.utf8, syntax: this.#syntax }
    return this.#text.bytes.length < shortest ? reading : { ...reading, memory }
  }

  advance(budget: Budget): boolean {
    const { bytes } = this.#text
    while (this.#target === undefined) {
      if (this.#at >= bytes.length) return true
      if (budget.left <= 0) return false
      const sign = nextByte(bytes, this.#syntax.sign, this.#at)
      budget.left -= stepsOfSearch(sign - this.#at)
      if (sign < bytes.length && this.#syntax.unitAt(bytes, sign) >= 0) this.#begin(sign)
      else this.#at = sign + 1
    }
    return this.#write(this.#target, budget)
  }

  /** Text without escapes needs no copy. */
  #begin(sign: number): void {
    const { length } = this.#text.bytes
    this.#target = length < shortest ? Buffer.allocUnsafe(length) : takeMemory(length)
    this.#at = 0
    if (this.#syntax.space >= 0) return
    this.#text.bytes.copy(this.#target, 0, 0, sign)
    this.#at = sign
    this.#to = sign
  }

  #write(target: Buffer, budget: Budget): boolean {
    const { bytes } = this.#text
    while (this.#at < bytes.length) {
      if (budget.left <= 0) return false
      const to = Math.min(bytes.length, this.#at + longestPiece, this.#at + 16 * budget.left)
      const piece = pieces.get(this.#syntax)
      if (piece !== undefined) this.#writePiece(piece, to, target, budget)
      else this.#writeBytes(to, target, budget)
    }
    return true
  }

  /** Reads up to `to`, or to the end of the escape there. */
  #writePiece(piece: UnescapedPiece, to: number, target: Buffer, budget: Budget): void {
    const { bytes, utf8 } = this.#text
    const syntax = this.#syntax
    const start = this.#at
    piece.begin(bytes, start, to)
    let at = piece.read(start, to)
    while (at < to) {
      const unit = syntax.unitAt(bytes, at)
      piece.write(unit < 0 ? syntax.sign : unit, syntax.sizeOf(unit, utf8))
      at += unit < 0 ? 1 : syntax.lengthAt(bytes, at)
      budget.left--
      if (at < to) at = piece.read(at, to)
    }
    const written = piece.copyTo(target, this.#to)
    budget.left -= 1 + ((at - start) >> 7) + ((at - start - written) >> 2)
    this.#at = at
    this.#to += written
  }

  /** The same for any syntax, byte by byte. */
  #writeBytes(to: number, target: Buffer, budget: Budget): void {
    const { bytes, utf8 } = this.#text
    const { sign, space, unitAt, lengthAt, sizeOf } = this.#syntax
    let written = this.#to
    let at = this.#at
    while (at < to) {
      const code = bytes[at]!
      const unit = code === sign ? unitAt(bytes, at) : -1
      if (unit < 0) target[written++] = code === space ? 32 : code
      else written += writeUnit(target, written, unit, sizeOf(unit, utf8))
      at += unit < 0 ? 1 : lengthAt(bytes, at)
    }
    budget.left -= 1 + ((at - this.#at) >> 4)
    this.#at = at
    this.#to = written
  }
}

/** Steps of a search for the next sign. */
const stepsOfSearch = (length: number): number => 2 + (Math.min(length, 64) >> 4) + (length >> 8)

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
