import { compareNumeric, isNumeric, type Numeric, parseNumeric } from '../../values/numbers.ts'
import { False, True, type Truth, Unreadable } from '../../values/truth.ts'
import type { ElementTest } from './equality.ts'
import { type Operand, readWords, WrongValue } from './values.ts'

export type OrderingName = 'gt' | 'gte' | 'lt' | 'lte'

const holds: Readonly<Record<OrderingName, (order: number) => boolean>> = {
  gt: order => order > 0,
  gte: order => order >= 0,
  lt: order => order < 0,
  lte: order => order <= 0,
}

/** Numbers, and text that spells one; anything else is unreadable. */
export function buildOrdering(name: OrderingName, operand: Operand): ElementTest | WrongValue {
  const limit = numberOf(operand.value)
  if (limit instanceof WrongValue) return limit
  const wanted = holds[name]
  return element => numeric(element, value => wanted(compareNumeric(value, limit)))
}

/** Both ends included. */
export function buildBetween(operand: Operand): ElementTest | WrongValue {
  if (operand.field.text === 'time.clock') return buildWindow(operand.value)
  const range = readRange(operand.value)
  if (range instanceof WrongValue) return range
  const [low, high] = range
  return element => numeric(element, value => compareNumeric(value, low) >= 0 && compareNumeric(value, high) <= 0)
}

function numeric(element: unknown, holdsFor: (value: Numeric) => boolean): Truth {
  const value = typeof element === 'string' ? parseNumeric(element) : element
  if (!isNumeric(value)) return Unreadable
  return holdsFor(value) ? True : False
}

export function numberOf(text: string): Numeric | WrongValue {
  return parseNumeric(text) ?? new WrongValue(`${JSON.stringify(text)} must be a number`)
}

/** The two ends of `"10,20"` or `[10, 20]`. */
export function readRange(value: string): readonly [Numeric, Numeric] | WrongValue {
  const words = readWords(value)
  if (words instanceof WrongValue || words.length !== 2) return new WrongValue('a range must be two numbers: "10,20"')
  const low = numberOf(words[0]!)
  const high = numberOf(words[1]!)
  if (low instanceof WrongValue) return low
  if (high instanceof WrongValue) return high
  return compareNumeric(low, high) > 0 ? new WrongValue('the range must not end before it begins') : [low, high]
}

/** `"22:00-06:00"`: wraps over midnight, the end is not part of it. */
function buildWindow(value: string): ElementTest | WrongValue {
  const window = readWindow(value)
  if (window instanceof WrongValue) return window
  return element => (inWindow(window, clockMinutes(String(element))) ? True : False)
}

/** A time of day from `from` to before `to`, minutes since midnight; over midnight when `from` is later. */
export interface Window {
  readonly from: number
  readonly to: number
}

export function readWindow(value: string): Window | WrongValue {
  const match = /^((?:[01]\d|2[0-3]):[0-5]\d)\s*-\s*((?:[01]\d|2[0-3]):[0-5]\d|24:00)$/.exec(value.trim())
  if (match === null) return new WrongValue('a time window must be written as "22:00-06:00"')
  const window = { from: clockMinutes(match[1]!), to: clockMinutes(match[2]!) }
  return window.from === window.to ? new WrongValue('the time window must not be empty') : window
}

export function inWindow(window: Window, minutes: number): boolean {
  if (window.from < window.to) return minutes >= window.from && minutes < window.to
  return minutes >= window.from || minutes < window.to
}

/** Minutes since midnight of `HH:MM`. */
export function clockMinutes(clock: string): number {
  return Number(clock.slice(0, 2)) * 60 + Number(clock.slice(3, 5))
}
