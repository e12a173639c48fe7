/** Members of the outermost object of a JSON text, read without parsing the rest. */
import { behindSpace, closingQuote, endOfValue } from './json-members.ts'

const space = 32
const quote = 34
const comma = 44
const colon = 58
const backslash = 92
const openBrace = 123
const closeBrace = 125
const lastAscii = 126
/** Longest name that is compared, bytes. An escape takes six for one. */
const maxName = 256

/** More of an object are not read: requests to models have a few, and a name takes longer than the rest of a body. */
const maxMembers = 1_000
/** Longer values are not parsed, which would take a thread long: none that is wanted is so long. Bytes. */
const maxValue = 16_384

/** A member: where its name ends, and where its value begins and ends. */
interface Place {
  readonly name: string | undefined
  readonly from: number
  readonly end: number
}

/** Names that are wanted, by these in lower case. */
export type WantedNames = ReadonlyMap<string, WantedName>

export interface WantedName {
  /** As the caller wants it named. */
  readonly name: string
  /** Names that are wanted of the object that is its value. */
  readonly inner?: WantedNames
  /** Its text is wanted, of any length, and not its value. */
  readonly isText?: boolean
}

/**
 * The wanted members of an object; those of which inner names are wanted as such maps too. Undefined when the text is no object
 * alone, has too many members, a wanted value of more than 16 KiB, or a wanted name twice: servers differ in which of them they
 * read. Some read names in any letter case, so they count as the same name.
 */
export function topMembers(text: Buffer, wanted: WantedNames): ReadonlyMap<string, unknown> | undefined {
  const found = new Map<string, unknown>()
  let at = behindSpace(text, 0)
  if (text[at] !== openBrace) return undefined
  at = behindSpace(text, at + 1)
  if (text[at] === closeBrace) return isOver(text, at) ? found : undefined
  for (let members = 0; members < maxMembers; members++) {
    const place = memberAt(text, at)
    if (place === undefined || !note(text, place, { wanted, found })) return undefined
    at = behindSpace(text, place.end)
    if (text[at] === closeBrace) return isOver(text, at) ? found : undefined
    if (text[at] !== comma) return undefined
    at = behindSpace(text, at + 1)
  }
  return undefined
}

/** Nothing follows the brace. */
const isOver = (text: Buffer, brace: number): boolean => behindSpace(text, brace + 1) === text.length

function memberAt(text: Buffer, at: number): Place | undefined {
  if (text[at] !== quote) return undefined
  const end = closingQuote(text, at + 1)
  if (end < 0) return undefined
  const behind = behindSpace(text, end + 1)
  if (text[behind] !== colon) return undefined
  const from = behindSpace(text, behind + 1)
  const valueEnd = endOfValue(text, from)
  return valueEnd <= from ? undefined : { name: nameAt(text, at, end), from, end: valueEnd }
}

/** Undefined for a name that is too long to be wanted. */
function nameAt(text: Buffer, from: number, end: number): string | undefined {
  if (end - from > maxName) return undefined
  if (isPlain(text, from + 1, end)) return text.toString('latin1', from + 1, end).toLowerCase()
  const name = parsed(text, from, end + 1)
  // The long s and the Kelvin sign are letters that some servers read as s and k.
  return typeof name === 'string' ? name.toUpperCase().toLowerCase() : undefined
}

/** Whether it is ASCII that needs no parsing. */
function isPlain(text: Buffer, from: number, end: number): boolean {
  for (let at = from; at < end; at++) {
    const code = text[at]!
    if (code < space || code > lastAscii || code === backslash) return false
  }
  return true
}

interface WantedMembers {
  readonly wanted: WantedNames
  readonly found: Map<string, unknown>
}

/** False: it is there a second time, or its value is no JSON. */
function note(text: Buffer, { name, from, end }: Place, { wanted, found }: WantedMembers): boolean {
  const known = name === undefined ? undefined : wanted.get(name)
  if (known === undefined) return true
  const value = readValue(text.subarray(from, end), known)
  if (value === undefined || found.has(known.name)) return false
  found.set(known.name, value)
  return true
}

/** Undefined: it cannot be read. */
function readValue(text: Buffer, { inner, isText }: WantedName): unknown {
  if (isText === true) return text
  if (inner !== undefined && text[0] === openBrace) return topMembers(text, inner)
  return text.length > maxValue ? undefined : parsed(text, 0, text.length)
}

/** Undefined: it is no JSON. */
function parsed(text: Buffer, from: number, end: number): unknown {
  try {
    return JSON.parse(text.toString('utf8', from, end))
  } catch {
    return undefined
  }
}
