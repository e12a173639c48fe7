/** RateLimit fields of budgets (draft-ietf-httpapi-ratelimit-headers): whole numbers, so money is in millionths. */
import type { BudgetRule } from '../../budgets/rules.ts'
import type { SpendState } from '../../limits/spend-slots.ts'
import { type BudgetParts, readsAnswer, type SpendReservation } from './reservation.ts'

/** A budget as it stands. */
export interface BudgetAt {
  readonly rule: BudgetRule
  /** Undefined: this gateway does not know it. */
  readonly state: SpendState | undefined
  /** Epoch milliseconds. */
  readonly now: number
  readonly currency: string
}

/**
 * None when others have a part in the budget: its amounts are for the agent whose budget it is.
 *
 * @param seconds until more may be spent
 */
export function limitFields({ rule, state, now, currency }: BudgetAt, left: number, seconds: number): string[] {
  if (rule.of !== 'Agent' || rule.limit === undefined || state === undefined) return []
  const { start, end } = rule.windowAt(now)
  const scale = rule.unit === 'Money' ? 1e3 : 1
  const quota = Math.floor((rule.limit + state.raised) / scale)
  const policy = `"${rule.name}";q=${quota};w=${Math.round((end - start) / 1_000)};qu="${unitOf(rule, currency)}"`
  return ['RateLimit-Policy', policy, 'RateLimit', `"${rule.name}";r=${Math.floor(left / scale)};t=${seconds}`]
}

const unitOf = ({ unit }: BudgetRule, currency: string): string =>
  ({ Calls: 'requests', Tokens: 'tokens', Money: `${currency}-millionths` })[unit]

export const secondsUntilNext = ({ rule, now }: Pick<BudgetAt, 'rule' | 'now'>): number =>
  Math.max(1, Math.ceil((rule.windowAt(now).end - now) / 1_000))

/**
 * Fields of a metered answer, of the budget with the smallest share left: what is neither spent nor reserved. None where the
 * upstream has such fields of its own, which clients obey.
 *
 * @param received fields of the upstream's answer
 */
export function answerLimits(
  spend: SpendReservation,
  received: readonly string[],
  { book, clock, config }: BudgetParts,
): readonly string[] {
  if (!readsAnswer(spend) || !config.Metering.AnswerFields || hasLimits(received)) return []
  const now = clock.now()
  let least = Number.POSITIVE_INFINITY
  let fields: readonly string[] = []
  for (const { rule, key } of spend.charges) {
    const state = rule.of === 'Agent' && rule.limit !== undefined ? book.stateOf(key) : undefined
    if (state === undefined || rule.limit === undefined) continue
    const limit = rule.limit + state.raised
    const left = Math.max(0, limit - state.spent - state.reserved)
    if (left / limit >= least) continue
    least = left / limit
    const at = { rule, state, now, currency: config.Metering.Currency }
    fields = limitFields(at, left, secondsUntilNext(at))
  }
  return fields
}

function hasLimits(received: readonly string[]): boolean {
  for (let i = 0; i < received.length; i += 2) if (/^ratelimit(?:-policy)?$/i.test(received[i]!)) return true
  return false
}
