/**
 * Review: requests that a person must look at, because a rule or a budget says so. A grant, leave of a reviewer, lets requests
 * like an approved one pass for a while.
 */
import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import { heldDecision } from '../../policy/evaluation/record.ts'
import { releaseSpend } from '../budgets/reservation.ts'
import { type CallShape, type ReserveOutcome, reserve } from '../budgets/reserve.ts'
import type { Decided, Exchange, Sendable, StepOutcome, StepResult } from '../exchange.ts'
import { suspend, suspensionOf } from '../held/suspend.ts'
import { receiveBody } from '../outbound/live.ts'
import type { Parts } from '../parts.ts'
import { notHeld } from './admit.ts'
import { passCircuit } from './origin.ts'

/** Holds a request for a person, if the decision says so and no grant covers it. */
export function review(exchange: Sendable, parts: Parts): StepResult {
  if (exchange.effect !== 'Hitl') return undefined
  return heldProblem(exchange) ?? useGrantOrAsk(exchange, parts)
}

async function useGrantOrAsk(exchange: Sendable, parts: Parts): Promise<StepOutcome> {
  // A use of the grant would be lost with a call that a budget refuses.
  const prepare = parts.budgets && (() => reserveSpend(exchange, parts))
  const granted = await useGrant(exchange, parts, prepare)
  if (granted !== true) releaseSpend(exchange, parts)
  if (isRefusal(granted)) return granted
  return granted === true ? undefined : askPerson(exchange, parts)
}

/** Refuses a request that needs no review if its idempotency key names a request that was or may be sent after review. */
export function checkKey(exchange: Decided, parts: Parts): StepResult {
  const { agent, effect, fields, unsentUse } = exchange
  const { idempotencyKey: key } = fields
  if (key === undefined || effect === 'Hitl') return undefined
  const check = () => parts.queue.checkKey(agent.id, key)
  // A grant let it pass before it began again.
  return unsentUse === undefined ? check() : giveBackUse(exchange, parts).then(check)
}

const tunnelNotHeld = refuse('tunnel_needs_review')

/** Why the request cannot be held for a person; undefined when it can. */
function heldProblem({ isTunnel, fields }: Decided) {
  if (isTunnel) return tunnelNotHeld
  return fields.webSocket ? notHeld : undefined
}

function askPerson(exchange: Decided, parts: Parts): StepResult {
  return heldProblem(exchange) ?? hold(exchange, parts)
}

const hold = async (exchange: Decided, parts: Parts): Promise<StepOutcome> =>
  (await suspend(exchange, parts)) ?? 'answered'

/** What else a request needs to pass once a grant covers it. No grant is used when this refuses it, or asks a person. */
type Prepare = () => PreparedCall | Promise<PreparedCall>
type PreparedCall = Refusal | 'asks' | undefined

/** True when a grant lets this request pass; its use is on record then. */
export async function useGrant(
  exchange: Decided,
  parts: Parts,
  prepare: Prepare | undefined,
): Promise<boolean | Refusal> {
  const { usedGrant: before, unsentUse } = exchange
  const used = await usePrepared(exchange, parts, prepare)
  const isWithdrawn = exchange.usedGrant !== before
  exchange.grantId = exchange.usedGrant = undefined
  if (used === undefined || used === 'asks') {
    await giveBackUse(exchange, parts)
    return false
  }
  if (isRefusal(used)) return used
  exchange.grantId = used.grant.id
  if (!isWithdrawn) exchange.usedGrant = used.grant
  // What it has used before may have been sent.
  exchange.unsentUse = used.grant.id === before?.id ? unsentUse : used
  if (exchange.isOver) await giveBackUse(exchange, parts)
  return true
}

/** Preparing belongs to the thread of the request, grants to the main one: so it is asked twice. */
async function usePrepared(exchange: Decided, parts: Parts, prepare: Prepare | undefined) {
  const { grants } = parts
  const held = suspensionOf(exchange, Buffer.alloc(0), parts)
  const use = () => {
    const { usedGrant: grant, unsentUse: unsent } = exchange
    // It stands again, or is given back, once that is known.
    exchange.unsentUse = undefined
    return grants.use(held, { grant, unsent })
  }
  if (prepare === undefined) return use()
  const covered = await grants.covers(held, exchange.usedGrant)
  if (covered !== true) return covered || undefined
  // The client may leave during each wait: what was reserved then would stay so, and a use of the grant would be lost.
  const refused = exchange.isOver ? left : await prepare()
  return refused ?? (exchange.isOver ? left : use())
}

/** Nobody gets it. */
const left = refuse('invalid_request')

/** Gives the use of a grant back at the end of an exchange, if the request did not leave. */
export function releaseUse(exchange: Exchange, parts: Parts): void {
  if (exchange.unsentUse !== undefined) void giveBackUse(exchange, parts)
}

/**
 * Gives back the use of a grant, and frees its idempotency key, by a request of which no byte was sent, so that a retry may pass.
 * If the store fails, the key stays taken, so that no request is sent twice.
 */
export async function giveBackUse(exchange: Exchange, { grants, report }: Parts): Promise<void> {
  const { unsentUse, requestId } = exchange
  if (unsentUse === undefined) return
  exchange.unsentUse = undefined
  try {
    const failed = await grants.giveBack(unsentUse, requestId)
    if (failed !== undefined) report('the use of a grant could not be given back', new Error(failed.refusal))
  } catch (error) {
    report('the use of a grant could not be given back', error)
  }
}

/** Lets a call pass when its budgets have something left, and asks a person where a budget says so. */
export function passBudgets(exchange: Sendable, parts: Parts): StepResult {
  const outcome = reserveSpend(exchange, parts)
  if (outcome instanceof Promise) return outcome.then(late => (late === 'asks' ? askPerson(exchange, parts) : late))
  return outcome === 'asks' ? askPerson(exchange, parts) : outcome
}

/** `asks`: a budget is used up, and the decision now is that a person must say whether the call passes. */
type Reserving = Refusal | 'asks' | undefined

/** Reserves what the call can cost in the budgets of its agent. A body that the decision did not need is held then. */
function reserveSpend(exchange: Sendable, parts: Parts): Reserving | Promise<Reserving> {
  // Reserved before a grant was used, if that let the call pass.
  if (parts.budgets === undefined || exchange.spend !== undefined) return undefined
  const outcome = reserve(exchange, liveCall, parts)
  return outcome instanceof Promise ? outcome.then(late => goOn(exchange, late, parts)) : holdAt(exchange, outcome)
}

const liveCall: CallShape<Sendable, Parts> = {
  isStream: ({ fields, isTunnel }) => fields.webSocket || isTunnel,
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
  return hasBody ? holdBody(exchange, parts) : Buffer.alloc(0)
}

async function holdBody(exchange: Sendable, parts: Parts): Promise<Buffer | Refusal> {
  const held = await receiveBody(exchange, parts.config.Proxy.MaxEvaluatedBodyBytes, parts)
  if (isRefusal(held)) return held
  return held.complete ? held.bytes : refuse('call_unmetered', tooLong)
}

const tooLong = 'The body of this call is longer than Proxy:MaxEvaluatedBodyBytes, so its cost cannot be limited.'
