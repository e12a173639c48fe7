/** How texts write a character that they cannot hold as it is: JSON with a backslash, forms and URLs with a percent sign. */

export interface EscapeSyntax {
  /** The byte with which an escape begins. */
  readonly sign: number
  /** The byte that stands for a space, or -1. */
  readonly space: number
  /** What the escape at a sign stands for: a UTF-16 unit or a byte; -1 where there is no escape. */
  unitAt(bytes: Buffer, at: number): number
  /** Bytes of the escape at a sign. */
  lengthAt(bytes: Buffer, at: number): number
  /** Bytes that a unit takes. */
  sizeOf(unit: number, utf8: boolean): number
}

const letterU = 117
/** `\u0041` and `\n`, bytes. */
const longEscape = 6
const shortEscape = 2

/** By the character behind the backslash; 0 for one that makes no escape. */
export const shortEscapes = Uint8Array.from({ length: 256 }, (_, code) => {
  const at = '"\\/bfnrt'.indexOf(String.fromCharCode(code))
  return at < 0 ? 0 : '"\\/\b\f\n\r\t'.charCodeAt(at)
})

const notHex = 16
const hexValues = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(value) ? notHex : value
})

/** The number in hexadecimal digits, or -1 where something else stands between. */
function hexAt(bytes: Buffer, from: number, end: number): number {
  if (end > bytes.length) return -1
  let number = 0
  for (let at = from; at < end; at++) {
    const value = hexValues[bytes[at]!]!
    if (value === notHex) return -1
    number = (number << 4) | value
  }
  return number
}

/** `\n`, `\"`, `\u0041`. */
export const jsonEscapes: EscapeSyntax = {
  sign: 92,
  space: -1,
  unitAt(bytes, at) {
    const code = bytes[at + 1] ?? 0
    if (code === letterU) return hexAt(bytes, at + shortEscape, at + longEscape)
    return shortEscapes[code] === 0 ? -1 : shortEscapes[code]!
  },
  lengthAt: (bytes, at) => (bytes[at + 1] === letterU ? longEscape : shortEscape),
  sizeOf(unit, utf8) {
    if (unit < 0x80 || !utf8) return 1
    return unit < 0x800 ? 2 : 3
  },
}

/** `%0A`, and `+` for a space, as forms write it. */
export const percentEscapes: EscapeSyntax = {
  sign: 37,
  space: 43,
  unitAt: (bytes, at) => hexAt(bytes, at + 1, at + 3),
  lengthAt: () => 3,
  sizeOf: () => 1,
}

/** The same in a text that holds URLs, where `+` mostly is itself. */
export const percentSigns: EscapeSyntax = { ...percentEscapes, space: -1 }

/** Writes a unit; returns the number of bytes. */
export function writeUnit(target: Buffer, to: number, unit: number, length: number): number {
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
