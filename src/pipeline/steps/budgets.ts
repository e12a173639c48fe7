import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import { heldDecision } from '../../policy/evaluation/record.ts'
import { settleSpend } from '../budgets/reservation.ts'
import { type CallShape, type ReserveOutcome, reserve } from '../budgets/reserve.ts'
import type { Exchange, Sendable, StepResult } from '../exchange.ts'
import { receiveBody } from '../outbound/live.ts'
import type { Parts } from '../parts.ts'
import { askPerson } from './ask-person.ts'
import { passCircuit } from './circuit.ts'

/** Lets a call pass when its budgets have something left, and asks a person where a budget says so. */
export function passBudgets(exchange: Sendable, parts: Parts): StepResult {
  const outcome = reserveSpend(exchange, parts)
  if (outcome instanceof Promise) return outcome.then(late => (late === 'asks' ? askPerson(exchange, parts) : late))
  return outcome === 'asks' ? askPerson(exchange, parts) : outcome
}

/** `asks`: a budget is used up, and the decision now is that a person must say whether the call passes. */
type Reserving = Refusal | 'asks' | undefined

/** Reserves what the call can cost in the budgets of its agent. A body that the decision did not need is held then. */
export function reserveSpend(exchange: Sendable, parts: Parts): Reserving | Promise<Reserving> {
  // Reserved before a grant was used, if that let the call pass.
  if (parts.budgets === undefined || exchange.spend !== undefined) return undefined
  const outcome = reserve(exchange, liveCall, parts)
  return outcome instanceof Promise ? outcome.then(late => goOn(exchange, late, parts)) : holdAt(exchange, outcome)
}

const liveCall: CallShape<Sendable, Parts> = {
  isStream: ({ fields, addressing }) => fields.webSocket || addressing.road === 'tunnel',
  bodyOf,
}

/** The permit of the circuit was given back while the body was read. */
function goOn(exchange: Sendable, outcome: ReserveOutcome, parts: Parts): Reserving {
  return holdAt(exchange, outcome) ?? (exchange.isOver ? undefined : passCircuit(exchange, parts))
}

/** Turns the decision into one that holds the call, when a budget asks for a person. */
function holdAt(exchange: Sendable, outcome: ReserveOutcome): Reserving {
  if (outcome === undefined || !('budget' in outcome)) return outcome
  const { budget, reason, publicReason } = outcome
  exchange.decision = heldDecision(exchange.decision, 'budget', { reason, publicReason })
  exchange.effect = 'Hitl'
  exchange.heldBudget = budget
  return 'asks'
}

function bodyOf(exchange: Sendable, parts: Parts): Buffer | Refusal | Promise<Buffer | Refusal> {
  const { body, hasBody } = exchange
  if (body !== undefined) return body
  return hasBody ? hold(exchange, parts) : Buffer.alloc(0)
}

async function hold(exchange: Sendable, parts: Parts): Promise<Buffer | Refusal> {
  const held = await receiveBody(exchange, parts.config.Proxy.MaxEvaluatedBodyBytes, parts)
  if (isRefusal(held)) return held
  return held.complete ? held.bytes : refuse('call_unmetered', tooLong)
}

const tooLong = 'The body of this call is longer than Proxy:MaxEvaluatedBodyBytes, so its cost cannot be limited.'

/**
 * Charges the budgets of a call whose answer came whole. Call it before the client sees the end: its next call, which another
 * thread may get, must not find this one under way.
 */
export function chargeWhole(exchange: Exchange, parts: Parts): void {
  if (exchange.spend === undefined) return
  const { upstreamStatus: status, meter } = exchange
  settleSpend(exchange, { status, meter, isWhole: true }, parts)
}

/** Charges the budgets at the end of an exchange, or gives back what was reserved when it was not sent. */
export function releaseSpend(exchange: Exchange, parts: Parts): void {
  if (exchange.spend === undefined) return
  const { upstreamStatus: status, meter } = exchange
  settleSpend(exchange, { status, meter, isWhole: false }, parts)
}
