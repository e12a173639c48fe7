import { compareNumeric, isNumeric, type Numeric, parseNumeric } from '../../values/numbers.ts'
import { False, True, type Truth, Unreadable } from '../../values/truth.ts'
import { ConditionError } from '../problems.ts'
import type { ElementTest } from './element-tests.ts'
import { type Operand, readWords } from './values.ts'

export type OrderingName = 'gt' | 'gte' | 'lt' | 'lte'

const holds: Readonly<Record<OrderingName, (order: number) => boolean>> = {
  gt: order => order > 0,
  gte: order => order >= 0,
  lt: order => order < 0,
  lte: order => order <= 0,
}

/** Numbers, and text that spells one; anything else is unreadable. */
export function buildOrdering(name: OrderingName, operand: Operand): ElementTest {
  const limit = numberOf(operand.value)
  const wanted = holds[name]
  return element => numeric(element, value => wanted(compareNumeric(value, limit)))
}

/** Both ends included. */
export function buildBetween(operand: Operand): ElementTest {
  if (operand.field.text === 'time.clock') return buildWindow(operand.value)
  const [low, high] = readRange(operand.value)
  return element => numeric(element, value => compareNumeric(value, low) >= 0 && compareNumeric(value, high) <= 0)
}

function numeric(element: unknown, holdsFor: (value: Numeric) => boolean): Truth {
  const value = typeof element === 'string' ? parseNumeric(element) : element
  if (!isNumeric(value)) return Unreadable
  return holdsFor(value) ? True : False
}

/** @throws ConditionError */
export function numberOf(text: string): Numeric {
  const number = parseNumeric(text)
  if (number === undefined) throw new ConditionError(`${JSON.stringify(text)} must be a number`)
  return number
}

/** The two ends of `"10,20"` or `[10, 20]`. @throws ConditionError */
export function readRange(value: string): readonly [Numeric, Numeric] {
  const words = readWords(value)
  if (words.length !== 2) throw new ConditionError('a range must be two numbers: "10,20"')
  const low = numberOf(words[0]!)
  const high = numberOf(words[1]!)
  if (compareNumeric(low, high) > 0) throw new ConditionError('the range must not end before it begins')
  return [low, high]
}

/** `"22:00-06:00"`: wraps over midnight, the end is not part of it. */
function buildWindow(value: string): ElementTest {
  const window = parseWindow(value)
  if (window === undefined) throw new ConditionError('a time window must be written as "22:00-06:00" and not be empty')
  return element => (inWindow(window, clockMinutes(String(element))) ? True : False)
}

/** A time of day from `from` to before `to`, minutes since midnight; over midnight when `from` is later. */
export interface TimeWindow {
  readonly from: number
  readonly to: number
}

/** Undefined when the text is no window, or the window is empty. */
export function parseWindow(value: string): TimeWindow | undefined {
  const match = /^((?:[01]\d|2[0-3]):[0-5]\d)\s*-\s*((?:[01]\d|2[0-3]):[0-5]\d|24:00)$/.exec(value.trim())
  if (match === null) return undefined
  const window = { from: clockMinutes(match[1]!), to: clockMinutes(match[2]!) }
  return window.from === window.to ? undefined : window
}

export function inWindow(window: TimeWindow, minutes: number): boolean {
  if (window.from < window.to) return minutes >= window.from && minutes < window.to
  return minutes >= window.from || minutes < window.to
}

/** Minutes since midnight of `HH:MM`. */
export function clockMinutes(clock: string): number {
  return Number(clock.slice(0, 2)) * 60 + Number(clock.slice(3, 5))
}
