import { isNumberPart } from '../values/numbers.ts'
import { stepsOfText } from '../values/work.ts'

/** Kinds of values that characters outside strings begin. */
const quoteKind = 1
const openKind = 2
const closeKind = 3
const colonKind = 4
const numberKind = 5
const wordKind = 6
const kinds = new Uint8Array(256)
for (const [index, characters] of ['"', '{[', '}]', ':', '-0123456789', 'tfn', ','].entries()) {
  for (const character of characters) kinds[character.charCodeAt(0)] = index + 1
}

/** Steps that JSON.parse takes at most, by kind. Names cost most: objects with different names have different shapes. */
const stepsOf = Uint8Array.of(0, 8, 12, 1, 32, 6, 3, 1)

/** The longest number that a double holds for sure, characters. */
const shortNumber = 15

/** Facts about a piece, right for any text that JSON.parse accepts. Places are counted in bytes. */
export interface ArrayPiece {
  /** The comma or bracket behind it, or the end of the text; -1 when the first element is too long for one piece. */
  readonly end: number
  /** Steps to find and read it. */
  readonly steps: number
  readonly values: number
  readonly members: number
  readonly deepest: number
  /** Whether some number may not fit into a double. */
  readonly longNumbers: boolean
  /** Whether some name is written with an escape. */
  readonly escapedNames: boolean
}

/**
 * The longest piece from `from` on, of whole elements or members, that takes no more than `mostSteps`.
 *
 * @param mayEscape there are backslashes in the text
 */
export function surveyPiece(bytes: Uint8Array, from: number, maxSteps: number, mayEscape: boolean): ArrayPiece {
  let depth = 0
  let deepest = 0
  let steps = 1
  // Strings that are names of members are counted too, and taken off at the end.
  let begun = 0
  let members = 0
  let longNumbers = false
  let escapedNames = false
  let nameFrom = from
  let end = -1
  let begunBefore = 0
  let membersBefore = 0
  let at = from
  for (; at < bytes.length; at++) {
    const kind = kinds[bytes[at]!]!
    if (kind === 0) continue
    steps += stepsOf[kind]!
    if (kind === quoteKind) {
      const last = closingQuote(bytes, at + 1, at + bytesOf(maxSteps))
      if (last < 0) break
      steps += stepsOfText(last - at)
      begun++
      nameFrom = at
      at = last
    } else if (kind === colonKind) {
      members++
      escapedNames ||= mayEscape && hasSlash(bytes, nameFrom, at)
      // No byte is searched twice, not even between colons that follow each other.
      nameFrom = at
    } else if (kind === numberKind) {
      const last = endOfWord(bytes, at)
      if (last < 0 || last - at > shortNumber) longNumbers = true
      begun++
      at = Math.abs(last) - 1
    } else if (kind === openKind) {
      begun++
      if (++depth > deepest) deepest = depth
    } else if (kind === wordKind) {
      begun++
      at += 3
    } else {
      if (depth === 0) {
        end = at
        begunBefore = begun
        membersBefore = members
      }
      if (kind === closeKind && --depth < 0) break
    }
    if (steps > maxSteps && (end >= 0 || depth > 0)) break
  }
  if (at >= bytes.length) {
    end = bytes.length
    begunBefore = begun
    membersBefore = members
  }
  return { end, steps, values: begunBefore - membersBefore, members: membersBefore, deepest, longNumbers, escapedNames }
}

function hasSlash(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at] === 92) return true
  return false
}

/** The longest string that a piece of so many steps may hold, bytes. */
export function bytesOf(steps: number): number {
  return steps * 8
}

/** By character: 1 for what numbers and words are made of, 2 for the letter of an exponent. */
const wordParts = Uint8Array.from({ length: 256 }, (_, code) => {
  if ((code | 32) === 101) return 2
  return isNumberPart(code) || (code >= 97 && code <= 122) ? 1 : 0
})

/** The end of a number or word; negative with a letter of an exponent in it. */
export function endOfWord(bytes: Uint8Array, from: number): number {
  let parts = 0
  let at = from + 1
  for (; at < bytes.length; at++) {
    const part = wordParts[bytes[at]!]!
    if (part === 0) break
    parts |= part
  }
  return parts > 1 ? -at : at
}

/** Quotes within so many bytes are found one by one, others by indexOf, which reads many bytes at once. */
const shortBytes = 8

/** The quote that ends a string, from `from` on, where no backslash escapes the character; -1 if not before `limit`. */
export function closingQuote(bytes: Uint8Array, from: number, limit: number): number {
  const end = Math.min(limit, bytes.length)
  for (let at = from; at < end; ) {
    for (const shortEnd = Math.min(end, at + shortBytes); at < shortEnd; at++) {
      const code = bytes[at]
      if (code === 92) at++
      else if (code === 34) return at
    }
    if (at >= end) return -1
    const quote = bytes.indexOf(34, at)
    if (quote < 0 || quote >= end) return -1
    let slash = quote
    while (slash > at && bytes[slash - 1] === 92) slash--
    if ((quote - slash) % 2 === 0) return quote
    at = quote + 1
  }
  return -1
}

/** The last place up to `limit` that is in no escape and no character. None of them begins before `from`. */
export function endOfPart(bytes: Uint8Array, from: number, limit: number): number {
  let at = Math.max(from, limit - 6)
  while (at > from && bytes[at - 1] === 92) at--
  for (;;) {
    const length = bytes[at] !== 92 ? 1 : bytes[at + 1] === 117 ? 6 : 2
    if (at + length > limit) break
    at += length
  }
  while (at > from && (bytes[at]! & 0xc0) === 0x80) at--
  return at
}
