import { JsonReader } from '../../base/json.ts'
import { finish } from '../turns/evaluation.ts'
import { numericOf } from '../values/numbers.ts'
import type { Budget, Work } from '../values/work.ts'
import { type ParsePiece, PieceReader } from './json-pieces.ts'

/** Maximum of values that a body may have: members and elements, lists and objects included. */
export const maxJsonValues = 100_000

/** JSON that was read. */
export class JsonDocument {
  #value: unknown
  /** Reads the numbers that a double may not hold, so that the value of one may be rounded; undefined without any. */
  #exact: PieceReader | undefined

  constructor(value: unknown, exact: PieceReader | undefined) {
    this.#value = value
    this.#exact = exact
  }

  get value(): unknown {
    return this.#value
  }

  /** Makes every number exact that a double cannot hold. False when all were before. */
  makeExact(): boolean {
    if (this.#exact === undefined) return false
    finish(this.#exact)
    this.#value = this.#exact.value
    this.#exact = undefined
    return true
  }
}

/**
 * Reads strict JSON (RFC 8259): no byte order mark, no duplicate keys, at most 64 levels, `maxValues` values and 10,000
 * members of one object.
 */
export class JsonReading implements Work {
  readonly #bytes: Buffer
  readonly #pieces: PieceReader

  /** @param bytes valid UTF-8 */
  constructor(bytes: Buffer, maxValues: number) {
    this.#bytes = bytes
    this.#pieces = new PieceReader(bytes, parsePiece, maxValues)
  }

  advance(budget: Budget): boolean {
    return this.#pieces.advance(budget)
  }

  /** The document, once all was read; a string says why it cannot be read. */
  get result(): JsonDocument | string {
    const { problem, value, mayRound } = this.#pieces
    if (problem !== undefined || !mayRound) return problem ?? new JsonDocument(value, undefined)
    const exact = new PieceReader(this.#bytes, parseExact, Number.POSITIVE_INFINITY)
    return new JsonDocument(value, exact)
  }
}

/** JSON.parse may mistake names that are written with escapes (base/json.ts). */
export const parsePiece: ParsePiece = (text, escapedNames) =>
  escapedNames ? new JsonReader(text).read() : JSON.parse(text)

/** Each number as it is written: one that a double cannot hold becomes LongNumber. A reviver takes twenty times the time. */
const parseExact = (text: string): unknown => new JsonReader(text, { numberOf: numericOf }).read()

/** The same at once. */
export function readJson(bytes: Buffer, maxValues = maxJsonValues): JsonDocument | string {
  const reading = new JsonReading(bytes, maxValues)
  reading.advance({ left: Number.POSITIVE_INFINITY })
  return reading.result
}
