import type { Condition } from '../language/model.ts'
import type { Operator } from '../language/operators/operators.ts'
import { readRange } from '../language/operators/ordering.ts'
import { parseNumeric } from '../values/numbers.ts'

/** One end of a range: a number, or what is just below (-1) or just above (1) it. */
export interface End {
  readonly number: number
  readonly shift: -1 | 0 | 1
}

export type Interval = readonly [low: End, high: End]

const lowest: End = { number: Number.NEGATIVE_INFINITY, shift: 0 }
const highest: End = { number: Number.POSITIVE_INFINITY, shift: 0 }

function isBefore(left: End, right: End): boolean {
  return left.number < right.number || (left.number === right.number && left.shift < right.shift)
}

/** The numbers that a condition allows; undefined for other conditions, and where a double does not hold an end. */
export function rangeOf(condition: Condition, operator: Operator): Interval | undefined {
  if (operator.form.suits !== 'ordering' || operator.negated || condition.field === 'time.clock') return undefined
  const { name } = operator.form
  const [low, high = low] = name === 'between' ? readRange(condition.value) : [parseNumeric(condition.value)]
  if (typeof low !== 'number' || typeof high !== 'number') return undefined
  if (name === 'gt') return [{ number: low, shift: 1 }, highest]
  if (name === 'lt') return [lowest, { number: low, shift: -1 }]
  return [name === 'lte' ? lowest : { number: low, shift: 0 }, name === 'gte' ? highest : { number: high, shift: 0 }]
}

export function isWithin(inner: Interval, outer: Interval): boolean {
  return !isBefore(inner[0], outer[0]) && !isBefore(outer[1], inner[1])
}

export function areApart(left: Interval, right: Interval): boolean {
  return isBefore(left[1], right[0]) || isBefore(right[1], left[0])
}
