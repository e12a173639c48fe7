import { alphanumeric, charset, digit, Runs, runLength, type Text, upper, upperDigits, word } from './bytes.ts'
import { isIban } from './iban.ts'
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
