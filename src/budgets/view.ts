import type { BudgetSettings } from '../config/budgets.ts'
import type { BudgetWindow } from '../limits/budget-window.ts'
import type { SpendState } from '../limits/spend-slots.ts'
import type { SpendTotals, StoredSpend } from '../storage/store.ts'
import { type BudgetRule, scaleOf } from './rules.ts'

/** A budget, and what all who have one have spent in the window that is open now. Amounts are in its unit. */
export interface BudgetView {
  readonly name: string
  readonly of: BudgetRule['of']
  readonly unit: BudgetRule['unit']
  /** Null for budgets of tokens and calls. */
  readonly currency: string | null
  /** Of each who has one; null: it is only counted. */
  readonly limit: number | null
  readonly per: BudgetSettings['Per']
  readonly timeZone: string
  readonly atLimit: BudgetSettings['AtLimit']
  readonly exact: boolean
  readonly from: string
  readonly resetsAt: string
  /** Who has called in this window. */
  readonly holders: number
  /** Part of their limit that the holder has spent who has spent the largest part; null: there is no limit. */
  readonly highestShare: number | null
  readonly spent: number
  /** The part of `spent` that no answer has told. */
  readonly estimated: number
  readonly calls: number
}

/** What one who has the budget has spent of it. */
export interface HolderView
  extends Pick<
    BudgetView,
    'of' | 'unit' | 'currency' | 'limit' | 'from' | 'resetsAt' | 'spent' | 'estimated' | 'calls'
  > {
  readonly budget: string
  /** Id of the agent, name of the owner or of the policy; `*` of all together. */
  readonly holder: string
  readonly raised: number
  /** By calls under way, and leased by other gateways. */
  readonly reserved: number
  /** Spent by the end of the window, at the pace so far; null when that is too short. */
  readonly forecast: number | null
}

interface Viewed {
  readonly rule: BudgetRule
  readonly currency: string
  readonly now: number
}

export interface ViewedBudget extends Viewed {
  readonly settings: BudgetSettings
  readonly window: BudgetWindow
  /** Undefined: nobody has called in this window. */
  readonly total: SpendTotals | undefined
}

export function budgetView({ settings, rule, currency, window, total }: ViewedBudget): BudgetView {
  const { Per, TimeZone, AtLimit, Exact } = settings
  const amount = amountsOf(rule)
  return {
    ...{ name: rule.name, ...termsOf(rule, currency), per: Per, timeZone: TimeZone, atLimit: AtLimit, exact: Exact },
    ...timesOf({ from: window.start, until: window.end }),
    holders: total?.holders ?? 0,
    highestShare: rule.limit === undefined ? null : (total?.highestShare ?? 0),
    spent: amount(total?.spent ?? 0),
    estimated: amount(total?.estimated ?? 0),
    calls: total?.calls ?? 0,
  }
}

export interface ViewedHolder extends Viewed {
  readonly stored: StoredSpend
  /** What this gateway knows beyond the store. */
  readonly state: SpendState | undefined
}

export function holderView({ rule, currency, stored, state, now }: ViewedHolder): HolderView {
  const { budget, holder, from, until } = stored
  const amount = amountsOf(rule)
  // Both only grow, and either may be the newer one.
  const spent = Math.max(stored.spent, state?.spent ?? 0)
  return {
    ...{ budget, holder, ...termsOf(rule, currency), ...timesOf(stored) },
    raised: amount(stored.raised),
    spent: amount(spent),
    reserved: amount(state?.reserved ?? stored.leased),
    estimated: amount(stored.estimated),
    calls: stored.calls,
    forecast: forecastOf(amount(spent), (now - from) / (until - from)),
  }
}

/** Part of a window from which on there is a forecast. */
const leastPassed = 0.05

/** @param passed part of the window that is over */
const forecastOf = (spent: number, passed: number): number | null =>
  passed < leastPassed ? null : spent / Math.min(1, passed)

const amountsOf =
  ({ unit }: BudgetRule) =>
  (amount: number): number =>
    amount / scaleOf(unit)

const termsOf = (rule: BudgetRule, currency: string) => ({
  of: rule.of,
  unit: rule.unit,
  currency: rule.unit === 'Money' ? currency : null,
  limit: rule.limit === undefined ? null : amountsOf(rule)(rule.limit),
})

const timesOf = ({ from, until }: Pick<StoredSpend, 'from' | 'until'>) => ({
  from: new Date(from).toISOString(),
  resetsAt: new Date(until).toISOString(),
})
