/** What a call has reserved of its budgets, and how it is settled: once, when the call is over. */

import { type BudgetCharge, type BudgetRule, scaleOf } from '../../budgets/rules.ts'
import type { SpendBook, SpendEnd } from '../../limits/spend.ts'
import type { UsageMeter } from '../answers/usage-meter.ts'
import { type BillParts, type BoundedModel, type Cost, type FinalCost, finalCost, noCost } from './bill.ts'

/** What the call can cost. */
export type BilledCall =
  | { readonly kind: 'model'; readonly model: BoundedModel; readonly max: Cost }
  | { readonly kind: 'fixed'; readonly cost: Cost }

export interface SpendReservation {
  readonly charges: readonly BudgetCharge[]
  readonly billed: BilledCall
  /** Its first byte was about to be written. */
  isSent: boolean
  /** When it was reserved, by the steady clock. */
  readonly since: number
}

/** A call that may have reserved something. */
export interface Spender {
  spend: SpendReservation | undefined
  /** Names of the budgets that count it, or of the one that refused it, for the log. */
  budget: string | undefined
  /** Money that was charged and that the answer does not tell: an estimate, or the price of a call. For the log. */
  charged: number | undefined
  /** Model that was refused because it has no price, for the log. */
  unpriced: string | undefined
}

/** Calls of any kind. */
export const unbilled: BilledCall = { kind: 'fixed', cost: noCost }

/** Whether the cost is told by the answer. */
export const readsAnswer = (spend: SpendReservation | undefined): boolean => spend?.billed.kind === 'model'

export function noteSent({ spend }: Spender, isSent: boolean): void {
  if (spend !== undefined) spend.isSent = isSent
}

export interface AnswerEnd {
  /** Of the answer; undefined: no head came. */
  readonly status: number | undefined
  readonly meter: UsageMeter | undefined
  /** All of the answer came. */
  readonly isWhole: boolean
}

export interface BudgetParts extends BillParts {
  readonly rules: readonly BudgetRule[]
  readonly book: SpendBook
  /** Resolves when the store was asked for the key, or takes too long. */
  readonly asked: (key: string) => Promise<void>
}

export interface Budgeted {
  /** Undefined without budgets. */
  readonly budgets: BudgetParts | undefined
}

/** Charges the budgets of a call with what it cost. Does nothing when it has reserved nothing, or was settled before. */
export function settleSpend(call: Spender, end: AnswerEnd, { budgets }: Budgeted): void {
  const { spend } = call
  if (spend === undefined || budgets === undefined) return
  call.spend = undefined
  const cost = spend.isSent && spend.billed !== unbilled ? costOf(spend, end, budgets) : unsent
  const isUnstated = cost !== unsent && (cost.isEstimated || spend.billed.kind === 'fixed')
  if (isUnstated && spend.charges.some(({ rule }) => rule.unit === 'Money')) call.charged = cost.money
  for (const charge of spend.charges) budgets.book.settle(charge, endOf(charge.rule, cost, spend.isSent))
}

/** An exchange that may have reserved something, and what is known of its answer. */
interface SpendingExchange extends Spender {
  readonly upstreamStatus: number | undefined
  readonly meter: UsageMeter | undefined
}

/**
 * Charges the budgets of a call whose answer came whole. Call it before the client sees the end: its next call, which another
 * thread may get, must not find this one under way.
 */
export function chargeWhole(exchange: SpendingExchange, parts: Budgeted): void {
  if (exchange.spend === undefined) return
  const { upstreamStatus: status, meter } = exchange
  settleSpend(exchange, { status, meter, isWhole: true }, parts)
}

/** Charges the budgets at the end of an exchange, or gives back what was reserved when it was not sent. */
export function releaseSpend(exchange: SpendingExchange, parts: Budgeted): void {
  if (exchange.spend === undefined) return
  const { upstreamStatus: status, meter } = exchange
  settleSpend(exchange, { status, meter, isWhole: false }, parts)
}

const unsent: FinalCost = { ...noCost, isEstimated: false }

function costOf(
  { billed, since }: SpendReservation,
  { status, meter, isWhole }: AnswerEnd,
  parts: BudgetParts,
): FinalCost {
  if (billed.kind === 'model') {
    meter?.end(isWhole)
    const thoughtMs = meter?.mayThink === false ? 0 : parts.clock.steady() - since
    const end = { status, isWhole, usage: meter?.usage, bytes: meter?.bytes, thoughtMs }
    return finalCost(billed.model, billed.max, end, parts)
  }
  const isDone = status === undefined || (status >= 200 && status <= 299)
  return isDone ? { ...billed.cost, isEstimated: status === undefined } : unsent
}

const oneCall: SpendEnd = { cost: 1, isEstimated: false, isCall: true }
const noCall: SpendEnd = { cost: 0, isEstimated: false, isCall: false }

function endOf({ unit }: BudgetRule, { tokens, money = 0, isEstimated }: FinalCost, isCall: boolean): SpendEnd {
  if (unit === 'Calls') return isCall ? oneCall : noCall
  // Half of an odd number of tokens may be the estimate.
  const cost = Math.ceil(unit === 'Tokens' ? tokens : money * scaleOf(unit) - 1e-6)
  return { cost, isEstimated, isCall }
}
