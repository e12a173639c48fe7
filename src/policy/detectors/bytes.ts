import { compileRunSearch, type RunSearch, searchedBytes } from './run-search.ts'

/** Bytes to search, and how to read those above 127: as UTF-8, or each as one character. */
export interface Text {
  readonly bytes: Buffer
  readonly utf8: boolean
}

/** A string as bytes; a lone surrogate becomes another character that is in no set. */
export function textOf(text: string): Text {
  return { bytes: Buffer.from(text), utf8: true }
}

/** A set of ASCII characters: 1 for each that a regular expression's class holds. */
export function charset(ranges: string): Uint8Array {
  const test = new RegExp(`[${ranges}]`)
  return Uint8Array.from({ length: 256 }, (_, code) => (code < 128 && test.test(String.fromCharCode(code)) ? 1 : 0))
}

export const digit = charset('0-9')
export const upper = charset('A-Z')
export const upperDigits = charset('A-Z0-9')
export const alphanumeric = charset('A-Za-z0-9')
/** `\w`. */
export const word = charset('A-Za-z0-9_')
export const urlSafe = charset('A-Za-z0-9_-')

export function asciiBytes(text: string): Uint8Array {
  return Uint8Array.from(text, char => char.charCodeAt(0))
}

/** Characters of the set from `start` on, counted up to `enough`. */
export function runLength({ bytes }: Text, start: number, set: Uint8Array, enough: number): number {
  const max = Math.min(enough, bytes.length - start)
  let length = 0
  while (length < max && set[bytes[start + length]!] === 1) length++
  return length
}

export function startsWith(bytes: Uint8Array, start: number, piece: Uint8Array): boolean {
  if (start < 0 || start + piece.length > bytes.length) return false
  for (let at = 0; at < piece.length; at++) if (bytes[start + at] !== piece[at]) return false
  return true
}

/** The same in any letter case. @param piece in lower case, of letters, `-` and `_` */
export function startsWithFolded(bytes: Uint8Array, start: number, piece: Uint8Array): boolean {
  if (start < 0 || start + piece.length > bytes.length) return false
  for (let at = 0; at < piece.length; at++) if (lower[bytes[start + at]!] !== piece[at]) return false
  return true
}

const lower = Uint8Array.from({ length: 256 }, (_, code) => (upper[code] === 1 ? code + 32 : code))

/** A loop looks at this many bytes first. SIMD searches the rest if there are enough bytes to be worth the call. */
const shortRun = 64
const worthSearch = 256
const firstSearch = 512

/** Finds runs: `least` or more characters of a set in a row. */
export class Runs {
  readonly #set: Uint8Array
  readonly #least: number
  readonly #search: RunSearch | undefined

  constructor(set: Uint8Array, least: number, search = compileRunSearch(set, least)) {
    this.#set = set
    this.#least = least
    this.#search = search
  }

  /** The first place from `from` on and before `to` where a run begins, or `to`. */
  next(bytes: Buffer, from: number, to: number): number {
    const search = this.#search
    if (search === undefined || to - from < worthSearch) return this.#nextShort(bytes, from, to)
    let end = from + shortRun
    let at = this.#nextShort(bytes, from, end)
    for (let size = firstSearch; at === end && end < to; size = searchedBytes) {
      end = Math.min(to, at + size)
      at = search(bytes, at, end)
    }
    return at
  }

  /**
   * The same by a loop. It looks at the last character of a run first: if that is not in the set, no run begins at the
   * places before it.
   */
  #nextShort(bytes: Buffer, from: number, to: number): number {
    const set = this.#set
    const least = this.#least
    const end = Math.min(bytes.length, to + least - 1)
    let last = from + least - 1
    while (last < end) {
      const before = last - least
      let at = last
      while (at > before && set[bytes[at]!] !== 0) at--
      if (at === before) return at + 1
      last = at + least
    }
    return to
  }
}

/** Calls of indexOf cost as much as looking at this many bytes. */
const shortBytes = 48

/** The next place of a byte from `from` on, or the end of the text. */
export function nextByte(bytes: Buffer, code: number, from: number): number {
  const shortEnd = Math.min(bytes.length, from + shortBytes)
  for (let at = from; at < shortEnd; at++) if (bytes[at] === code) return at
  if (shortEnd === bytes.length) return shortEnd
  const found = bytes.indexOf(code, shortEnd)
  return found < 0 ? bytes.length : found
}

/** `\s` beyond ASCII, in UTF-8: bytes of the white space that ends before `end`, or 0. */
export function wideSpaceBefore(bytes: Uint8Array, end: number): number {
  if (end > 1 && isWideSpace(bytes, end - 2)) return 2
  return end > 2 && bytes[end - 3]! >= 0xe0 && isWideSpace(bytes, end - 3) ? 3 : 0
}

/** Whether a white space character beyond ASCII begins here: U+00A0, 1680, 2000-200A, 2028, 2029, 202F, 205F, 3000, FEFF. */
export function isWideSpace(bytes: Uint8Array, at: number): boolean {
  const second = bytes[at + 1]!
  const third = bytes[at + 2]!
  switch (bytes[at]!) {
    case 0xc2:
      return second === 0xa0
    case 0xe1:
      return second === 0x9a && third === 0x80
    case 0xe2:
      if (second === 0x81) return third === 0x9f
      return second === 0x80 && (third <= 0x8a || third === 0xa8 || third === 0xa9 || third === 0xaf)
    case 0xe3:
      return second === 0x80 && third === 0x80
    default:
      return bytes[at] === 0xef && second === 0xbb && third === 0xbf
  }
}
