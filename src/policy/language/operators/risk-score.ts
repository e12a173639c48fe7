import type { Facts } from '../../request/facts.ts'
import { and, False, not, True, type Truth, Unknown } from '../../values/truth.ts'
import { ConditionError } from '../problems.ts'
import type { Operator } from './operators.ts'
import { numberOf, readRange } from './ordering.ts'
import type { Operand } from './values.ts'

type RiskTest = (facts: Facts) => Truth

/** Tests of `risk.score`, which before the body arrives is known as an interval. */
export function riskTest({ form, name }: Operator, { value }: Operand): RiskTest {
  switch (form.name) {
    case 'gt':
      return above(toDouble(value))
    case 'gte':
      return atLeast(toDouble(value))
    case 'lt':
      return negated(atLeast(toDouble(value)))
    case 'lte':
      return negated(above(toDouble(value)))
    case 'between': {
      const [low, high] = readRange(value)
      const [from, to] = [atLeast(Number(String(low))), negated(above(Number(String(high))))]
      return facts => and(from(facts), to(facts))
    }
    default:
      throw new ConditionError(`the operator on risk.score must be gt, gte, lt, lte or between, not ${name}`)
  }
}

function above(limit: number): RiskTest {
  return facts => {
    const { low, high } = facts.risk.interval(facts)
    if (low > limit) return True
    return high <= limit ? False : Unknown
  }
}

function atLeast(limit: number): RiskTest {
  return facts => {
    const { low, high } = facts.risk.interval(facts)
    if (low >= limit) return True
    return high < limit ? False : Unknown
  }
}

function negated(test: RiskTest): RiskTest {
  return facts => not(test(facts))
}

function toDouble(text: string): number {
  return Number(String(numberOf(text)))
}
