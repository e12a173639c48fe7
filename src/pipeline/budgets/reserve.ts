/** Reserves what a call can cost in its budgets, before it is sent. */
import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import { type BudgetCharge, type BudgetRule, scaleOf } from '../../budgets/rules.ts'
import type { HeldBudget } from '../../hitl/model.ts'
import { rowOf } from '../../limits/spend-lease.ts'
import type { CalledModel } from '../../llm/formats.ts'
import type { Call } from '../outbound/call.ts'
import { type Barred, heldReason, isUsedUp, refuseBarred } from './barred.ts'
import { boundedModel, type Cost, kindOf, maxCostOf, readBilled, unpricedModel } from './bill.ts'
import { type BilledCall, type Budgeted, type BudgetParts, type Spender, unbilled } from './reservation.ts'

/** A call before it is sent. */
export interface BudgetedCall
  extends Spender,
    Pick<Call, 'agent' | 'target' | 'method' | 'rawHeaders' | 'isOver' | 'rulebook' | 'decision'> {
  /** A person has approved it: it passes budgets that ask one. */
  readonly isApproved: boolean
}

/** How budgets see calls of a kind. */
export interface CallShape<C extends BudgetedCall, P> {
  /** It opens a WebSocket or a tunnel, whose content is not read. */
  isStream(call: C): boolean
  /** All of the body; a refusal when it cannot be held. */
  bodyOf(call: C, parts: P): Buffer | Refusal | Promise<Buffer | Refusal>
}

/** A budget is used up that asks a person then. */
interface BudgetHold {
  readonly budget: HeldBudget
  /** For reviewers. */
  readonly reason: string
  /** For the agent. */
  readonly publicReason: string
}

export type ReserveOutcome = Refusal | BudgetHold | undefined

/** Undefined when it is reserved, or no budget applies. Waits for the body, or for the store. */
export function reserve<C extends BudgetedCall, P extends Budgeted>(
  call: C,
  shape: CallShape<C, P>,
  parts: P,
): ReserveOutcome | Promise<ReserveOutcome> {
  const { budgets } = parts
  if (budgets === undefined) return undefined
  let rules = noRules
  let needsModel = false
  for (const rule of budgets.rules) {
    if (!rule.applies(call) || !isChosen(call, rule)) continue
    // Only what providers say costs anything: an agent could say anything from a host of its own.
    if (!rule.countsCalls && budgets.providerAt(call.target.origin) === undefined) continue
    needsModel ||= !rule.countsCalls
    rules = rules === noRules ? [rule] : [...rules, rule]
  }
  if (needsModel) {
    const isStream = shape.isStream(call)
    return reserveModel(call, { isStream, bodyOf: () => shape.bodyOf(call, parts), rules }, budgets)
  }
  return rules === noRules ? undefined : takeAll(call, chargesOf(call, rules, unbilled, budgets), unbilled, budgets)
}

const noRules: readonly BudgetRule[] = []

/** Where rules of the agent's policy name the budget, only calls that one of these allows count. */
function isChosen({ rulebook, decision }: BudgetedCall, { name }: BudgetRule): boolean {
  const named = rulebook?.policy?.budgets
  if (named === undefined || !named.has(name)) return true
  return decision?.decision === 'Allow' && decision.budget === name
}

interface ModelTerms {
  readonly isStream: boolean
  bodyOf(): Buffer | Refusal | Promise<Buffer | Refusal>
  readonly rules: readonly BudgetRule[]
}

function reserveModel(
  call: BudgetedCall,
  { isStream, bodyOf, rules }: ModelTerms,
  parts: BudgetParts,
): ReserveOutcome | Promise<ReserveOutcome> {
  const kind = kindOf(call, isStream, parts)
  const callsAlone = rules.filter(({ countsCalls }) => countsCalls)
  const takeCalls = () => takeAll(call, chargesOf(call, callsAlone, unbilled, parts), unbilled, parts)
  if (kind === 'free') return takeCalls()
  if (kind === 'other') {
    const isRefused = parts.config.Metering.OtherCalls === 'Refuse' && rules.some(({ unit }) => unit !== 'Calls')
    return isRefused ? refuse('call_unmetered', unmetered) : takeCalls()
  }
  if ('perCall' in kind) {
    const billed: BilledCall = { kind: 'fixed', cost: { tokens: 0, money: kind.perCall } }
    const meant = rules.filter(({ models }) => models === undefined)
    return takeAll(call, chargesOf(call, meant, billed, parts), billed, parts)
  }
  const body = bodyOf()
  if (body instanceof Promise) return body.then(late => reserveCalled(call, { called: kind, body: late, rules }, parts))
  return reserveCalled(call, { called: kind, body, rules }, parts)
}

const unmetered = 'A budget applies to this call, and its answer does not tell what it costs.'

interface CalledBody {
  readonly called: CalledModel
  readonly body: Buffer | Refusal
  readonly rules: readonly BudgetRule[]
}

function reserveCalled(
  call: BudgetedCall,
  { called, body, rules }: CalledBody,
  parts: BudgetParts,
): ReserveOutcome | Promise<ReserveOutcome> {
  if (isRefusal(body)) return body
  if (call.isOver) return undefined
  const read = readBilled(call, called, body, parts)
  if (isRefusal(read)) return read
  const meant = rules.filter(({ models }) => read.request.models.some(model => isMeant(models, model)))
  const model = boundedModel(
    read,
    meant.some(({ exact }) => exact),
  )
  const money = meant.some(({ unit }) => unit === 'Money') ? maxCostOf(model, parts) : 0
  if (money === undefined) {
    call.unpriced = unpricedModel(model, parts)
    return refuse('price_unknown', withoutPrice(call.unpriced))
  }
  const { input, output } = model.usage
  const billed: BilledCall = { kind: 'model', model, max: { tokens: input + output, money } }
  return takeAll(call, chargesOf(call, meant, billed, parts), billed, parts)
}

/** A call that names no model may be of any: a stored prompt can have one. */
const isMeant = (models: RegExp | undefined, model: string | undefined): boolean =>
  models === undefined || model === undefined || models.test(model)

function withoutPrice(model: string | undefined): string | undefined {
  return model === undefined
    ? undefined
    : `The model ${JSON.stringify(model)} has no price, so no budget of money can count it.`
}

function chargesOf(
  { agent, isApproved }: BudgetedCall,
  rules: readonly BudgetRule[],
  billed: BilledCall,
  { clock }: BudgetParts,
): readonly BudgetCharge[] {
  const now = clock.now()
  const [first] = rules
  if (rules.length === 1 && first?.countsCalls && !isApproved) return first.oneCallAt(agent, now)
  const max = billed.kind === 'model' ? billed.max : billed.cost
  return rules.map(rule => {
    const passes = rule.passes || (rule.asks && isApproved)
    return { rule, key: rule.keyAt(agent, now), amount: amountOf(rule, max), limit: rule.limit, passes }
  })
}

/** What is reserved: above 0, so that nothing passes when nothing is left. */
function amountOf({ unit, share }: BudgetRule, { tokens, money = 0 }: Cost): number {
  if (unit === 'Calls') return 1
  return Math.max(1, Math.ceil((unit === 'Tokens' ? tokens : money * scaleOf(unit)) * share))
}

/** A call asks the store at most this often: others may take what was leased. */
const maxAsks = 20

function takeAll(
  call: BudgetedCall,
  charges: readonly BudgetCharge[],
  billed: BilledCall,
  parts: BudgetParts,
): ReserveOutcome | Promise<ReserveOutcome> {
  if (charges.length === 0) return undefined
  const outcome = takeOnce(call, charges, billed, parts)
  return isKeys(outcome) ? takeAsked(call, { charges, billed, keys: outcome }, parts) : outcome
}

const isKeys = (outcome: ReserveOutcome | readonly string[]): outcome is readonly string[] => Array.isArray(outcome)

interface AskedCharges {
  readonly charges: readonly BudgetCharge[]
  readonly billed: BilledCall
  readonly keys: readonly string[]
}

async function takeAsked(
  call: BudgetedCall,
  { charges, billed, keys }: AskedCharges,
  parts: BudgetParts,
): Promise<ReserveOutcome> {
  let next = keys
  for (let asks = 0; asks < maxAsks; asks++) {
    await Promise.all(next.map(parts.asked))
    // Nothing gives back what is reserved after the end of a call.
    if (call.isOver) return undefined
    const outcome = takeOnce(call, charges, billed, parts)
    if (!isKeys(outcome)) return outcome
    next = outcome
  }
  return refuse('budget_reserved', undefined, { headers: ['Retry-After', '2'] })
}

/** Keys: these are to be asked for first. */
function takeOnce(
  call: BudgetedCall,
  charges: readonly BudgetCharge[],
  billed: BilledCall,
  { book, clock, config }: BudgetParts,
): ReserveOutcome | readonly string[] {
  const reserved = book.reserve(charges, clock.steady())
  if (reserved === undefined) {
    call.spend = { charges, billed, isSent: false, since: clock.steady() }
    call.budget = charges.length === 1 ? charges[0]!.rule.name : charges.map(({ rule }) => rule.name).join()
    return undefined
  }
  if (!('bar' in reserved)) return reserved
  const { charge, bar } = reserved
  const rule = charges.find(({ key }) => key === charge.key)?.rule
  if (rule === undefined) throw new Error('cannot happen: a call is barred by a budget of another call')
  call.budget = rule.name
  const state = book.stateOf(charge.key)
  const barred: Barred = { rule, bar, state, now: clock.now(), currency: config.Metering.Currency }
  return rule.asks && isUsedUp(barred) ? holdAt(barred, charge.key) : refuseBarred(barred)
}

function holdAt(barred: Barred, key: string): BudgetHold {
  const { budget: name, holder, until } = rowOf(key)
  const publicReason = `The budget ${name} is used up. A person decides whether the call passes.`
  return { budget: { name, of: barred.rule.of, holder, until }, reason: heldReason(barred), publicReason }
}
