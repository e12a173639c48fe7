import { alphanumeric, charset, digit, Runs, runLength, type Text, upper, upperDigits, word } from './bytes.ts'
import type { DetectorFindings, Pass, RankedDetector } from './scan.ts'

/** What numbers and IBANs are made of, and the length of the shortest number. */
const part = charset('A-Z0-9 -')
const runs = new Runs(part, 11)

export interface WantedNumbers {
  readonly card: RankedDetector | undefined
  readonly socialSecurity: RankedDetector | undefined
  readonly iban: RankedDetector | undefined
}

/** Looks for numbers of cards, persons and accounts, at each beginning of a word in long runs of their characters. */
export class NumberPass implements Pass {
  readonly best: number
  readonly #wanted: WantedNumbers

  constructor(wanted: WantedNumbers) {
    this.#wanted = wanted
    const all = [wanted.card, wanted.socialSecurity, wanted.iban].filter(one => one !== undefined)
    this.best = Math.min(...all.map(({ rank }) => rank))
  }

  run(text: Text, from: number, to: number, found: DetectorFindings): number {
    const { bytes } = text
    let at = runs.next(bytes, from, to)
    let start = at
    while (at < to) {
      const code = bytes[at]!
      if (part[code] === 0) {
        found.looks += (at - start) >> 3
        at = runs.next(bytes, at + 1, to)
        start = at
        continue
      }
      at++
      if (code < 48) continue
      found.looks += code < 58 ? 4 : 1
      this.#look(text, at - 1, found)
      if (found.rank === this.best) return at
      // Nothing begins in the rest of this word.
      while (at < to && upperDigits[bytes[at]!] === 1) at++
    }
    if (start < at) found.looks += (at - start) >> 3
    return at
  }

  #look(text: Text, at: number, found: DetectorFindings): void {
    const { bytes } = text
    const before = at === 0 ? 0 : bytes[at - 1]!
    const { card, socialSecurity, iban } = this.#wanted
    if (bytes[at]! < 58) {
      if (word[before] === 1) return
      if (card !== undefined && isCardAt(text, at)) found.note(card, at)
      else if (socialSecurity !== undefined && isSocialSecurity(text, at)) found.note(socialSecurity, at)
    } else if (iban !== undefined && iban.rank < found.rank && alphanumeric[before] === 0 && beginsIban(bytes, at)) {
      found.looks += 8
      if (isIban(bytes, at)) found.note(iban, at)
    }
  }
}

/** Whether two letters and two digits follow. */
function beginsIban(bytes: Uint8Array, at: number): boolean {
  return upper[bytes[at + 1]!] === 1 && digit[bytes[at + 2]!] === 1 && digit[bytes[at + 3]!] === 1
}

function endsWord(bytes: Uint8Array, at: number): boolean {
  return at >= bytes.length || word[bytes[at]!] === 0
}

/** 13 to 19 digits in a row or in the groups that are printed on cards, with the Luhn checksum (ISO/IEC 7812-1). */
function isCardAt(text: Text, at: number): boolean {
  const length = runLength(text, at, digit, 20)
  if (length >= 13) return isCard(text.bytes, at, lastGroup(text, at, 13, 19))
  const separator = text.bytes[at + length]
  if (length !== 4 || (separator !== 32 && separator !== 45)) return false
  const third = behindGroup(text, at + 5, 6, separator)
  if (third > 0) return text.bytes[at] === 51 && isCard(text.bytes, at, lastGroup(text, third, 4, 5))
  return isInFours(text, at, separator)
}

/** 4-4-4-4 digits, and one to three more behind them. */
function isInFours(text: Text, at: number, separator: number): boolean {
  for (let from = at + 5; from <= at + 10; from += 5) if (behindGroup(text, from, 4, separator) === 0) return false
  if (isCard(text.bytes, at, lastGroup(text, at + 15, 4, 4))) return true
  const fifth = behindGroup(text, at + 15, 4, separator)
  return fifth > 0 && isCard(text.bytes, at, lastGroup(text, fifth, 1, 3))
}

/** The index after a group of that many digits and its separator, or 0. */
function behindGroup(text: Text, from: number, length: number, separator: number): number {
  const end = from + length
  return runLength(text, from, digit, length) === length && text.bytes[end] === separator ? end + 1 : 0
}

/** The place behind a group of `least` to `max` digits that no letter or digit follows, or 0. */
function lastGroup(text: Text, from: number, least: number, max: number): number {
  const length = runLength(text, from, digit, max + 1)
  const end = from + length
  return length >= least && length <= max && endsWord(text.bytes, end) ? end : 0
}

/** First digits in use, not all digits the same, Luhn checksum. */
function isCard(bytes: Uint8Array, start: number, end: number): boolean {
  if (end === 0 || !isFirstInUse(bytes[start]!, bytes[start + 1]!)) return false
  let sum = 0
  let doubled = false
  let same = true
  for (let at = end - 1; at >= start; at--) {
    const code = bytes[at]!
    if (code < 48) continue
    if (code !== bytes[start]) same = false
    const value = doubled ? (code - 48) * 2 : code - 48
    sum += value > 9 ? value - 9 : value
    doubled = !doubled
  }
  return !same && sum % 10 === 0
}

/** Cards begin with 3 to 6 or 22 to 27. */
function isFirstInUse(first: number, second: number): boolean {
  return (first >= 51 && first <= 54) || (first === 50 && second >= 50 && second <= 55)
}

/** United States social security number, with its dashes, in the ranges that are given out. */
function isSocialSecurity(text: Text, at: number): boolean {
  const { bytes } = text
  if (runLength(text, at, digit, 4) !== 3 || behindGroup(text, at, 3, 45) === 0) return false
  if (behindGroup(text, at + 4, 2, 45) === 0 || lastGroup(text, at + 7, 4, 4) === 0 || bytes[at + 11] === 45)
    return false
  const area = numberAt(bytes, at, 3)
  const given = area !== 0 && area !== 666 && area < 900
  return given && numberAt(bytes, at + 4, 2) !== 0 && numberAt(bytes, at + 7, 4) !== 0
}

function numberAt(bytes: Uint8Array, at: number, length: number): number {
  let value = 0
  for (let place = at; place < at + length; place++) value = value * 10 + bytes[place]! - 48
  return value
}

/** Remainder by 97 after one more character, for each remainder and each of the 36 characters. */
const nextRemainder = new Uint8Array(97 * 64)
for (let remainder = 0; remainder < 97; remainder++) {
  for (let value = 0; value < 36; value++) {
    nextRemainder[remainder * 64 + value] = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
}

/** Remainder by 97 of a remainder with six digits behind it. */
const millions = Uint8Array.from({ length: 97 }, (_, remainder) => (remainder * 1_000_000) % 97)

const valueOfCharacter = (code: number) => (code < 58 ? code - 48 : code - 55)

const shortest = 15
const longest = 34
/** Maximum of characters that are looked at, spaces included. */
const maxCharacters = 42
/** Text may follow an account number of this length; a shorter one must end with the text. */
const plainlyLong = 20

/**
 * Whether two letters and two digits begin an account number whose checksum is right (ISO 13616), or its beginning of
 * some valid length is: text in groups may run on. The checksum is carried on from one character to the next: what is
 * behind the first four comes first, and these then make six digits.
 */
function isIban(bytes: Uint8Array, at: number): boolean {
  const letters = valueOfCharacter(bytes[at]!) * 100 + valueOfCharacter(bytes[at + 1]!)
  const digits = valueOfCharacter(bytes[at + 2]!) * 10 + valueOfCharacter(bytes[at + 3]!)
  const wanted = (98 - ((letters * 100 + digits) % 97)) % 97
  const end = Math.min(bytes.length, at + maxCharacters)
  let length = 4
  let right = 0
  let remainder = 0
  for (let place = at + 4; place < end && length < longest; place++) {
    if (bytes[place] === 32 && place + 1 < end) place++
    const code = bytes[place]!
    if (upperDigits[code] === 0) break
    length++
    remainder = nextRemainder[remainder * 64 + valueOfCharacter(code)]!
    if (length >= shortest && millions[remainder] === wanted) right = length
  }
  return right > 0 && (right === length || right >= plainlyLong)
}
