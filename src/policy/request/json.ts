import { finish } from '../turns/evaluation.ts'
import { isNumberPart } from '../values/numbers.ts'
import { type Budget, stepsOfText, type Work } from '../values/work.ts'
import { ExactReader, endOfString } from './exact-json.ts'
import { maxMembers, PieceReader } from './json-pieces.ts'

/** Deepest nesting that is read; deeper bodies are unreadable. */
const maxDepth = 64

/** Most values that a body may have: members and elements, lists and objects included. */
export const defaultMaxJsonValues = 100_000

/** JSON that was read. */
export class JsonDocument {
  #value: unknown
  #text: string
  /** Whether a double may not hold some number of it, so that the value of one may be rounded. */
  #mayRound: boolean
  #exact: PieceReader | undefined

  constructor(value: unknown, text: string, mayRound: boolean) {
    this.#value = value
    this.#text = mayRound ? text : ''
    this.#mayRound = mayRound
  }

  get value(): unknown {
    return this.#value
  }

  /** Makes every number exact that a double cannot hold. False when all were before. */
  makeExact(): boolean {
    if (!this.#mayRound) return false
    this.#exact ??= new PieceReader(this.#text, text => new ExactReader(text).read())
    finish(this.#exact)
    this.#value = this.#exact.value
    this.#exact = undefined
    this.#text = ''
    this.#mayRound = false
    return true
  }
}

/**
 * Reads strict JSON (RFC 8259): no byte order mark, no duplicate keys, at most 64 levels, `maxValues` values and 10,000
 * members of one object.
 *
 * The time of JSON.parse grows with the number of values, so they are counted first. The same pass counts members, which
 * tells duplicate keys: the parsed tree then has fewer.
 */
export class JsonReading implements Work {
  readonly #text: string
  readonly #maxValues: number
  #survey: Survey | undefined
  readonly #pieces: PieceReader

  constructor(text: string, maxValues: number) {
    this.#text = text
    this.#maxValues = maxValues
    this.#pieces = new PieceReader(text, JSON.parse)
  }

  advance(budget: Budget): boolean {
    if (this.#survey === undefined) {
      this.#survey = surveyOf(this.#text, this.#maxValues)
      budget.left -= stepsOfText(this.#text.length)
    }
    return this.#tooMuch !== undefined || this.#pieces.advance(budget)
  }

  get #tooMuch(): string | undefined {
    const { deepest, values } = this.#survey as Survey
    if (deepest > maxDepth) return `nested deeper than ${maxDepth}`
    return values > this.#maxValues ? `of more than ${this.#maxValues} values` : undefined
  }

  /** What was read once all is; a string is why it cannot be read. */
  get result(): JsonDocument | string {
    const { members, longNumbers } = this.#survey as Survey
    const { value, isInvalid, hasLongObject } = this.#pieces
    if (this.#tooMuch !== undefined) return this.#tooMuch
    if (isInvalid) return 'not valid JSON'
    if (hasLongObject) return `of more than ${maxMembers} members in one object`
    return this.#pieces.members === members ? new JsonDocument(value, this.#text, longNumbers) : 'duplicate keys'
  }
}

/** The same at once. */
export function readJson(text: string, maxValues = defaultMaxJsonValues): JsonDocument | string {
  const reading = new JsonReading(text, maxValues)
  reading.advance({ left: Number.POSITIVE_INFINITY })
  return reading.result
}

/** What characters outside strings begin. */
const stringKind = 1
const openKind = 2
const closeKind = 3
const colonKind = 4
const numberKind = 5
const wordKind = 6
const kinds = new Uint8Array(128)
for (const [index, characters] of ['"', '{[', '}]', ':', '-0123456789', 'tfn'].entries()) {
  for (const character of characters) kinds[character.charCodeAt(0)] = index + 1
}

/** The longest number that a double holds for sure, characters. */
const shortNumber = 15

/** Facts about JSON text, right for any text that JSON.parse accepts. */
interface Survey {
  readonly deepest: number
  readonly values: number
  readonly members: number
  /** Whether some number may not fit into a double. */
  readonly longNumbers: boolean
}

/** One pass over the text, which ends where a bound is passed. */
function surveyOf(text: string, maxValues: number): Survey {
  const size = text.length
  let depth = 0
  let deepest = 0
  // Strings that are names of members were counted too, and are taken off at the end.
  let begun = 0
  let members = 0
  let longNumbers = false
  for (let at = 0; at < size; at++) {
    const kind = kinds[text.charCodeAt(at)]
    if (kind === undefined || kind === 0) continue
    if (kind === closeKind) {
      depth--
      continue
    }
    if (kind === colonKind) {
      members++
      continue
    }
    begun++
    if (kind === stringKind) at = endOfString(text, at)
    else if (kind === numberKind) {
      const end = endOfNumber(text, at)
      longNumbers ||= end - at > shortNumber || isExponent(text, end)
      at = (isExponent(text, end) ? endOfNumber(text, end + 1) : end) - 1
    } else if (kind === wordKind) at += 3
    else if (kind === openKind && ++depth > deepest) deepest = depth
    if (begun - members > maxValues || depth > maxDepth) break
  }
  return { deepest, values: begun - members, members, longNumbers }
}

function endOfNumber(text: string, start: number): number {
  let end = start
  while (end < text.length && isNumberPart(text.charCodeAt(end))) end++
  return end
}

function isExponent(text: string, at: number): boolean {
  return (text.charCodeAt(at) | 32) === 101
}
