/** Detectors that need more than a literal and a run of characters. Each looks at a bounded window. */

const zero = 48
const nine = 57

function isDigit(code: number): boolean {
  return code >= zero && code <= nine
}

function isWord(code: number): boolean {
  return isDigit(code) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95
}

/** Longest run of digits with separators that is looked at; longer runs are no number of a card or person. */
const maxRun = 40

interface DigitRun {
  readonly digits: string
  readonly text: string
}

/** Asks `accepts` about every run of digits, in which single spaces, dashes and dots may stand; stops at true. */
function someDigitRun(text: string, accepts: (run: DigitRun) => boolean): boolean {
  for (let at = 0; at < text.length; at++) {
    if (!isDigit(text.charCodeAt(at))) continue
    const end = endOfRun(text, at)
    const alone = (at === 0 || !isWord(text.charCodeAt(at - 1))) && !isWord(text.charCodeAt(end))
    if (alone && end - at <= maxRun) {
      const run = text.slice(at, end)
      if (accepts({ digits: run.replace(/\D/g, ''), text: run })) return true
    }
    at = end
  }
  return false
}

function endOfRun(text: string, start: number): number {
  let end = start + 1
  while (end < text.length) {
    if (isDigit(text.charCodeAt(end))) end++
    else if (isSeparator(text.charCodeAt(end)) && isDigit(text.charCodeAt(end + 1))) end += 2
    else break
  }
  return end
}

function isSeparator(code: number): boolean {
  return code === 32 || code === 45
}

/** 13 to 19 digits that begin as cards do and pass the Luhn checksum (ISO/IEC 7812-1). */
export function findCard(text: string): boolean {
  return someDigitRun(text, ({ digits }) => digits.length >= 13 && digits.length <= 19 && isCard(digits))
}

function isCard(digits: string): boolean {
  return /^[3-6]|^2[2-7]/.test(digits) && !/^(\d)\1*$/.test(digits) && luhn(digits)
}

function luhn(digits: string): boolean {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = digits.charCodeAt(digits.length - 1 - index) - zero
    const doubled = index % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** United States social security number, with its dashes, in the ranges that are given out. */
export function findSsn(text: string): boolean {
  return someDigitRun(text, run => /^(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}$/.test(run.text))
}

/** International telephone number: a plus sign and 8 to 15 digits (E.164). */
export function findPhone(text: string): boolean {
  for (let at = text.indexOf('+'); at >= 0; at = text.indexOf('+', at + 1)) {
    if (at > 0 && isWord(text.charCodeAt(at - 1))) continue
    if (/^\+[1-9](?:[ ().-]{0,2}\d){7,14}(?!\d)/.test(text.slice(at, at + 48))) return true
  }
  return false
}

export function findEmail(text: string): boolean {
  for (let at = text.indexOf('@'); at > 0; at = text.indexOf('@', at + 1)) {
    const before = text.slice(Math.max(0, at - 64), at)
    const after = text.slice(at + 1, at + 256)
    if (/[A-Za-z0-9_%+-]$/.test(before) && /^(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])/.test(after)) {
      return true
    }
  }
  return false
}

/** Account number whose checksum is right (ISO 13616). */
export function findIban(text: string): boolean {
  const start = /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?=[ A-Z0-9])/g
  for (const match of text.matchAll(start)) {
    const window = text.slice(match.index, match.index + 42)
    const run = /^[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}/.exec(window)?.[0] ?? ''
    if (isIbanPrefix(run.replaceAll(' ', ''))) return true
  }
  return false
}

/** Whether the text, or its beginning of some valid length, has the right checksum: spaced text may run on. */
function isIbanPrefix(text: string): boolean {
  for (let length = Math.min(34, text.length); length >= 15; length--) {
    if (ibanChecksum(text.slice(0, length)) === 1) return text.length === length || length >= 20
  }
  return false
}

function ibanChecksum(text: string): number {
  let remainder = 0
  for (const char of text.slice(4) + text.slice(0, 4)) {
    const value = Number.parseInt(char, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder
}

/** `https://user:password@host`. */
export function findUrlPassword(text: string): boolean {
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at + 3)) {
    if (/^[^\s/:@?#"'<>]{1,64}:[^\s/:@?#"'<>]{3,128}@[A-Za-z0-9[]/.test(text.slice(at + 3, at + 200))) return true
  }
  return false
}
