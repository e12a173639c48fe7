/** What is spent of budgets, for rules that read it. */
import { type BudgetRule, scaleOf } from '../../budgets/rules.ts'
import type { SpendState } from '../../limits/spend-slots.ts'
import type { BudgetFacts, SpendFacts } from '../../policy/request/input.ts'
import type { Call } from '../outbound/call.ts'
import type { BudgetParts } from './reservation.ts'

type Reader = Pick<Call, 'agent' | 'rulebook'> & { spent: SpendFacts | undefined }

/**
 * Notes what is spent of the budgets that calls of the agent may be held against: it is two seconds old at most. Returns a
 * promise when the store must be asked first. What the store does not tell in time stays unknown.
 */
export function noteSpent(call: Reader, budgets: BudgetParts | undefined): Promise<void> | undefined {
  call.spent = undefined
  if (budgets === undefined) return undefined
  const { book, clock } = budgets
  const read = () => {
    const now = clock.now()
    const steady = clock.steady()
    return budgets.rules
      .filter(rule => rule.appliesTo(call.agent))
      .map(rule => {
        const key = rule.keyAt(call.agent, now)
        return { rule, key, state: book.look(key, steady) }
      })
  }
  const first = read()
  const unknown = first.filter(({ state }) => state === undefined)
  if (unknown.length === 0) {
    call.spent = factsOf(call, first)
    return undefined
  }
  return Promise.all(unknown.map(({ key }) => budgets.asked(key))).then(() => {
    call.spent = factsOf(call, read())
  })
}

interface Found {
  readonly rule: BudgetRule
  readonly state: SpendState | undefined
}

function factsOf({ rulebook }: Reader, found: readonly Found[]): SpendFacts {
  // A budget that rules name counts a part of the calls alone.
  const named = rulebook?.policy?.budgets
  const whole = found.filter(({ rule }) => named?.has(rule.name) !== true)
  const totalOf = (total: BudgetRule['total']) => {
    const known = whole.find(({ rule }) => rule.total === total)
    return known?.state && takenOf(known.state) / scaleOf(known.rule.unit)
  }
  return {
    spendToday: totalOf('spendToday'),
    spendThisMonth: totalOf('spendThisMonth'),
    tokensToday: totalOf('tokensToday'),
    budgets: new Map(found.map(({ rule, state }) => [rule.name, ofBudget(rule, state)])),
  }
}

const takenOf = ({ spent, reserved }: SpendState): number => spent + reserved

const unknownBudget: BudgetFacts = { used: undefined, remaining: undefined }

function ofBudget({ limit, unit }: BudgetRule, state: SpendState | undefined): BudgetFacts {
  if (limit === undefined || state === undefined) return unknownBudget
  const all = limit + state.raised
  const taken = takenOf(state)
  return { used: all > 0 ? taken / all : 1, remaining: Math.max(0, all - taken) / scaleOf(unit) }
}
