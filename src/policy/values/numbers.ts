/**
 * Numbers as JSON writes them. A double keeps 15 significant digits; anything longer is compared by its text, so that
 * 9007199254740993 and 9007199254740992 stay different and 1e400 stays finite.
 */

/** A JSON number that a double cannot hold. */
export class LongNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
  toJSON(): string {
    return this.text
  }
}

export type Numeric = number | LongNumber

const grammar = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const digitsKept = 15

/** The number that `text` denotes by the grammar of RFC 8259 section 6, or undefined. */
export function parseNumeric(text: string): Numeric | undefined {
  const first = text.charCodeAt(0)
  const mayBegin = (first >= 48 && first <= 57) || first === 45
  if (!mayBegin || !grammar.test(text)) return undefined
  return numericOf(text)
}

/** Digits, signs and the point: what a JSON number is made of but for its exponent's letter. */
export function isNumberPart(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 45 && code <= 46) || code === 43
}

/** The number of a text already known to be a JSON number. */
export function numericOf(text: string): Numeric {
  return fitsDouble(text) ? Number(text) : new LongNumber(text)
}

/** Powers of ten of doubles, with some to spare at both ends. */
const maxPower = 290

/** Whether a double holds the number: at most 15 significant digits, and an exponent in its range. */
function fitsDouble(text: string): boolean {
  let digits = 0
  let first = -1
  let last = -1
  let whole = -1
  let exponent = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if ((code | 32) === 101) {
      exponent = Number(text.slice(at + 1))
      break
    }
    if (code === 46) whole = digits
    if (code > 48 && first < 0) first = digits
    if (code > 48) last = digits
    if (code >= 48) digits++
  }
  return fits(first, last, (whole < 0 ? digits : whole) - first + exponent)
}

/** `first` and `last`: places of the digits that are not zero among all; `point`: the power of ten before the first. */
function fits(first: number, last: number, point: number): boolean {
  return first < 0 || (last - first < digitsKept && Math.abs(point) < maxPower)
}

export function isNumeric(value: unknown): value is Numeric {
  return typeof value === 'number' || value instanceof LongNumber
}

/** Below zero, zero or above zero as `left` is less than, equal to or greater than `right`. Exact. */
export function compareNumeric(left: Numeric, right: Numeric): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right
  return compareDecimal(decimal(String(left)), decimal(String(right)))
}

/** Equal for equal numbers. A number that a double holds never equals one that it does not. */
export function numericKey(number: Numeric): number | string {
  if (typeof number === 'number') return number
  const { sign, digits, point } = decimal(number.text)
  return `${sign} ${digits} ${point}`
}

/** The value is sign x 0.digits x 10^point; `digits` has no zero at either end. */
interface Decimal {
  readonly sign: -1 | 0 | 1
  readonly digits: string
  readonly point: number
}

const zero = 48

function decimal(text: string): Decimal {
  const negative = text.startsWith('-')
  const [mantissa = '', exponent = '0'] = (negative ? text.slice(1) : text).toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = whole + fraction
  let leading = 0
  while (leading < all.length && all.charCodeAt(leading) === zero) leading++
  // By hand: `/0+$/` takes a time that grows with the square of the number of zeros inside.
  let end = all.length
  while (end > leading && all.charCodeAt(end - 1) === zero) end--
  const digits = all.slice(leading, end)
  if (digits === '') return { sign: 0, digits: '', point: 0 }
  return { sign: negative ? -1 : 1, digits, point: whole.length - leading + Number(exponent) }
}

function compareDecimal(left: Decimal, right: Decimal): number {
  if (left.sign !== right.sign) return left.sign - right.sign
  return left.sign * compareMagnitude(left, right)
}

function compareMagnitude(left: Decimal, right: Decimal): number {
  if (left.point !== right.point) return left.point < right.point ? -1 : 1
  if (left.digits === right.digits) return 0
  return left.digits < right.digits ? -1 : 1
}
