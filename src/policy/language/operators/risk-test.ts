import type { Facts } from '../../request/facts.ts'
import type { Numeric } from '../../values/numbers.ts'
import { and, False, True, type Truth, Unknown } from '../../values/truth.ts'
import type { Operator } from './operators.ts'
import { numberOf, readRange } from './ordering.ts'
import { type Operand, WrongValue } from './values.ts'

/** Tests of `risk.score`, which before the body arrives is known as an interval. */
export function riskTest(operator: Operator, operand: Operand): ((facts: Facts) => Truth) | WrongValue {
  const name = operator.form.name
  if (name === 'between') return betweenTest(operand.value)
  if (name !== 'gt' && name !== 'gte' && name !== 'lt' && name !== 'lte') {
    return new WrongValue(`${operator.name} is not possible on risk.score: use gt, gte, lt, lte or between`)
  }
  const limit = numberOf(operand.value)
  return limit instanceof WrongValue ? limit : orderingTests[name](toDouble(limit))
}

type RiskTest = (facts: Facts) => Truth

const above =
  (limit: number): RiskTest =>
  facts => {
    const { low, high } = facts.risk.interval(facts)
    if (low > limit) return True
    return high <= limit ? False : Unknown
  }

const atLeast =
  (limit: number): RiskTest =>
  facts => {
    const { low, high } = facts.risk.interval(facts)
    if (low >= limit) return True
    return high < limit ? False : Unknown
  }

const atMost =
  (limit: number): RiskTest =>
  facts => {
    const { low, high } = facts.risk.interval(facts)
    if (high <= limit) return True
    return low > limit ? False : Unknown
  }

const below =
  (limit: number): RiskTest =>
  facts => {
    const { low, high } = facts.risk.interval(facts)
    if (high < limit) return True
    return low >= limit ? False : Unknown
  }

const orderingTests = { gt: above, gte: atLeast, lt: below, lte: atMost }

function betweenTest(value: string): RiskTest | WrongValue {
  const range = readRange(value)
  if (range instanceof WrongValue) return range
  const from = atLeast(toDouble(range[0]))
  const to = atMost(toDouble(range[1]))
  return facts => and(from(facts), to(facts))
}

function toDouble(value: Numeric): number {
  return Number(String(value))
}
