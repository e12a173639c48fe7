/** What agents are told when a budget keeps a call from being sent. */
import { type Refusal, refuse } from '../../base/refusals.ts'
import { spentText } from '../../budgets/rules.ts'
import type { SpendBar } from '../../limits/spend.ts'
import { type BudgetAt, limitFields, secondsUntilNext } from './limit-fields.ts'

/** A call that does not fit. */
export interface Barred extends BudgetAt {
  readonly bar: SpendBar
}

/** Seconds until a client should try again: other calls are under way. */
const soon = '2'

/** All of the limit is spent, or what is left is too little for the call. */
export const isUsedUp = ({ rule, bar, state }: Barred): boolean =>
  bar === 'exceeded' || (bar === 'reserved' && rule.exact && state?.reserved === 0)

export function refuseBarred(barred: Barred): Refusal {
  const { rule, bar } = barred
  if (bar === 'away') return refuse('store_unavailable')
  if (bar === 'full') return refuse('busy')
  if (isUsedUp(barred)) return refuseExceeded(barred)
  const detail = `Calls under way have reserved the rest of the budget ${rule.name}. Wait as Retry-After says.`
  return refuse('budget_reserved', detail, { headers: ['Retry-After', soon, ...limitFields(barred, 0, 2)] })
}

function refuseExceeded(barred: Barred): Refusal {
  const { rule, now } = barred
  const { end } = rule.windowAt(now)
  const seconds = secondsUntilNext(barred)
  const next = `The next window begins at ${new Date(end).toISOString()}.`
  const detail = `The budget ${rule.name} is used up${amounts(barred)}. ${next}`
  // The SDK of OpenAI would sleep for any Retry-After.
  const headers = ['Retry-After', String(seconds), 'x-should-retry', 'false', ...limitFields(barred, 0, seconds)]
  return refuse('budget_exceeded', detail, { headers })
}

/** Why a person is asked, for reviewers. */
export function heldReason(barred: Barred): string {
  const { rule, state, currency } = barred
  if (state === undefined || rule.limit === undefined) return `budget ${rule.name} is used up`
  return `budget ${rule.name}: ${spentText(rule, state, currency)} spent`
}

/** Amounts are for the agent whose budget it is: others see its name alone. */
const amounts = ({ rule, state, currency }: Barred): string =>
  rule.of !== 'Agent' || state === undefined || rule.limit === undefined ? '' : `: ${spentText(rule, state, currency)}`
