import { ExactReader, endOfString } from './exact-json.ts'
import { isNumberPart } from './numbers.ts'

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
    this.#value = new ExactReader(this.#text).read()
    this.#text = ''
    this.#mayRound = false
    return true
  }
}

/**
 * Strict JSON (RFC 8259): no byte order mark, no duplicate keys, at most 64 levels and `maxValues` values. A string is
 * why the text cannot be read.
 *
 * JSON.parse is the fast part, but its time and memory grow with the number of values, so they are counted first. The
 * same pass counts members, which tells duplicate keys: the parsed tree then has fewer.
 */
export function readJson(text: string, maxValues = defaultMaxJsonValues): JsonDocument | string {
  const survey = surveyOf(text, maxValues)
  if (survey.deepest > maxDepth) return `nested deeper than ${maxDepth}`
  if (survey.values > maxValues) return `of more than ${maxValues} values`
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'not valid JSON'
  }
  if (countMembers(value) !== survey.members) return 'duplicate keys'
  return new JsonDocument(value, text, survey.longNumbers)
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

/** Members of all objects in the tree; its depth was checked before. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) {
    let count = 0
    for (let index = 0; index < value.length; index++) count += countMembers(value[index])
    return count
  }
  // Names first: Object.values takes twice as long for an object of many members.
  const names = Object.keys(value)
  let count = names.length
  for (const name of names) count += countMembers((value as Record<string, unknown>)[name])
  return count
}
