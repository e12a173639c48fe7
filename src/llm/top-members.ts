/** Members of the outermost object of a JSON text, read without parsing the rest. */
import { behindSpace, closingQuote, endOfValue } from './json-members.ts'

const quote = 34
const comma = 44
const colon = 58
const openBrace = 123
const closeBrace = 125
/** Longest name that is compared, bytes. An escape takes six for one. */
const maxName = 256

/** A member: where its name ends, and where its value begins and ends. */
interface Place {
  readonly name: string | undefined
  readonly from: number
  readonly end: number
}

/**
 * The wanted members of an object. Undefined when the text is no object alone, or has a wanted name twice: servers differ in
 * which of them they read. Some read names in any letter case, so they count as the same name.
 *
 * @param wanted by names in lower case, as the caller wants them named
 */
export function topMembers(
  text: Buffer,
  wanted: ReadonlyMap<string, string>,
): ReadonlyMap<string, unknown> | undefined {
  const found = new Map<string, unknown>()
  let at = behindSpace(text, 0)
  if (text[at] !== openBrace) return undefined
  at = behindSpace(text, at + 1)
  if (text[at] === closeBrace) return isOver(text, at) ? found : undefined
  for (;;) {
    const place = memberAt(text, at)
    if (place === undefined || !note(text, place, { wanted, found })) return undefined
    at = behindSpace(text, place.end)
    if (text[at] === closeBrace) return isOver(text, at) ? found : undefined
    if (text[at] !== comma) return undefined
    at = behindSpace(text, at + 1)
  }
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
  const name = parsed(text, from, end + 1)
  // The long s and the Kelvin sign are letters that some servers read as s and k.
  return typeof name === 'string' ? name.toUpperCase().toLowerCase() : undefined
}

interface WantedMembers {
  readonly wanted: ReadonlyMap<string, string>
  readonly found: Map<string, unknown>
}

/** False: it is there a second time, or its value is no JSON. */
function note(text: Buffer, { name, from, end }: Place, { wanted, found }: WantedMembers): boolean {
  const known = name === undefined ? undefined : wanted.get(name)
  if (known === undefined) return true
  const value = parsed(text, from, end)
  if (value === undefined || found.has(known)) return false
  found.set(known, value)
  return true
}

/** Undefined: it is no JSON. */
function parsed(text: Buffer, from: number, end: number): unknown {
  try {
    return JSON.parse(text.toString('utf8', from, end))
  } catch {
    return undefined
  }
}
