import { LongNumber, numericOf } from './numbers.ts'

/** Deepest nesting that is read; deeper bodies are unreadable. */
const maxDepth = 64

/**
 * Strict JSON (RFC 8259): no byte order mark, no duplicate keys, at most 64 levels; numbers that a double cannot hold
 * come as LongNumber. A string is why the text cannot be read.
 *
 * JSON.parse is the fast part. One pass over the text beside it counts members, which tells duplicate keys: the parsed
 * tree then has fewer.
 */
export function readJson(text: string): { readonly value: unknown } | string {
  const scan = scanText(text)
  if (scan.depth > maxDepth) return `nested deeper than ${maxDepth}`
  let value: unknown
  try {
    value = scan.longNumbers ? JSON.parse(text, keepLongNumbers) : JSON.parse(text)
  } catch {
    return 'not valid JSON'
  }
  if (countMembers(value) !== scan.members) return 'duplicate keys'
  return { value }
}

/** V8 gives a third argument with the source text; the types of ES2024 do not know it. */
function keepLongNumbers(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source
  return typeof value === 'number' && source !== undefined ? numericOf(source) : value
}

const quote = 34
const backslash = 92
const openBrace = 123
const closeBrace = 125
const openBracket = 91
const closeBracket = 93
const colon = 58
const minus = 45
const shortNumber = 15

/** Facts about JSON text, right for any text that JSON.parse accepts. */
function scanText(text: string): { depth: number; members: number; longNumbers: boolean } {
  let depth = 0
  let deepest = 0
  let members = 0
  let longNumbers = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (code === openBrace || code === openBracket) deepest = Math.max(deepest, ++depth)
    else if (code === closeBrace || code === closeBracket) depth--
    else if (code === colon) members++
    else if (isNumberPart(code)) {
      const end = endOfNumber(text, at)
      longNumbers ||= end - at > shortNumber || hasExponent(text, at, end)
      at = end - 1
    }
  }
  return { depth: deepest, members, longNumbers }
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === backslash) at++
    else if (code === quote) return at
  }
  return text.length
}

function isNumberPart(code: number): boolean {
  return (code >= 48 && code <= 57) || code === minus
}

function endOfNumber(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && isNumberText(text.charCodeAt(at))) at++
  return at
}

/** Digits and . + - e E. */
function isNumberText(code: number): boolean {
  return isNumberPart(code) || code === 46 || code === 43 || code === 69 || code === 101
}

function hasExponent(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if ((text.charCodeAt(at) | 32) === 101) return true
  return false
}

/** Members of all objects in the tree; its depth was checked before. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null || value instanceof LongNumber) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const element of value) count += countMembers(element)
    return count
  }
  const entries = Object.values(value)
  for (const entry of entries) count += 1 + countMembers(entry)
  return count
}
