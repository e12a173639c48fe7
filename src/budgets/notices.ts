/** Tells people that a budget is nearly, or fully, spent: once for each who has it, in each window, by one gateway. */
import { rowOf, type SpendRowState } from '../limits/spend-lease.ts'
import type { Clock } from '../runtime/clock.ts'
import type { SpendNotice, SpendTable } from '../storage/store.ts'
import { type BudgetRule, scaleOf, spentText, unitText } from './rules.ts'

export interface BudgetNoticesOptions {
  readonly ruleOf: (budget: string) => BudgetRule | undefined
  readonly currency: string
  readonly clock: Pick<Clock, 'now'>
  readonly store: { readonly spend: Pick<SpendTable, 'notify'> }
  readonly report: (what: string, error: unknown) => void
}

/** Keys that are remembered as told; the store knows all of them. */
const maxKept = 10_000

/** A function that is given what the store says of a key. */
export function createBudgetNotices({ ruleOf, currency, clock, store, report }: BudgetNoticesOptions) {
  const sent = new Map<string, SpendNotice['level']>()

  return (key: string, state: Pick<SpendRowState, 'spent' | 'raised'>): void => {
    const rule = ruleOf(rowOf(key).budget)
    const level = rule && levelOf(rule, state)
    if (rule === undefined || level === undefined || (sent.get(key) ?? 0) >= level) return
    if (sent.size >= maxKept) sent.clear()
    sent.set(key, level)
    const { entry, event } = textsOf(rule, { key, level, currency, state, now: clock.now() })
    store.spend.notify({ ...rowOf(key), level }, entry, event).catch(error => {
      sent.delete(key)
      report('it could not be recorded that a budget is spent', error)
    })
  }
}

function levelOf(rule: BudgetRule, { spent, raised }: Pick<SpendRowState, 'spent' | 'raised'>) {
  if (rule.limit === undefined) return undefined
  const limit = rule.limit + raised
  if (spent >= limit) return 2
  return spent >= limit * rule.warnAt ? 1 : undefined
}

interface NoticeFacts {
  readonly key: string
  readonly level: SpendNotice['level']
  readonly currency: string
  readonly state: Pick<SpendRowState, 'spent' | 'raised'>
  readonly now: number
}

function textsOf(rule: BudgetRule, { key, level, currency, state, now }: NoticeFacts) {
  const { budget, holder, until } = rowOf(key)
  const scale = scaleOf(rule.unit)
  const [spent, limit] = [state.spent / scale, ((rule.limit ?? 0) + state.raised) / scale]
  const unit = unitText(rule, currency)
  const facts = { budget, holder, spent, limit, unit, resetsAt: new Date(until).toISOString() }
  const cause = `${budget}: ${spentText(rule, state, currency)}`
  const whose = {
    agentId: rule.of === 'Agent' ? holder : '',
    ...(rule.of === 'Owner' && { ownerId: holder }),
  }
  const [action, type] =
    level === 2 ? (['budget.exceeded', 'budgetExceeded'] as const) : (['budget.warned', 'budgetWarned'] as const)
  return {
    entry: { at: now, actor: 'gateway', requestId: null, action, subject: budget, details: facts },
    event: { type, at: now, hitlId: null, data: { ...whose, cause, ...facts } },
  }
}
