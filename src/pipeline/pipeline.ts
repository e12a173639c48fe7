import { parseTarget } from '../base/target.ts'
import type { Refusal } from '../errors.ts'
import { isRefusal, refuse } from '../errors.ts'
import { sendRefusal } from '../http/respond.ts'
import { replacedBy } from '../http/unreadable.ts'
import { authenticate } from './authenticate.ts'
import { closeCircuit, passCircuit } from './circuit.ts'
import { attachCredentials } from './credentials.ts'
import { decide } from './decide.ts'
import type { Arrival, Step } from './exchange.ts'
import { Exchange } from './exchange.ts'
import { forward } from './forward.ts'
import { answerOptions, isLastHop } from './last-hop.ts'
import { leaveLimit, limit } from './limit.ts'
import type { Parts } from './parts.ts'
import { suspend, useGrant } from './suspend.ts'

/**
 * The road of a proxied request, top to bottom (spec 4.4): a request is forwarded only if the agent is active,
 * within its rate, the circuit is closed, and the decision allows it. Each step returns a refusal or nothing; a step
 * that must wait returns a promise, and nothing else is waited for: a turn of the microtask queue costs something too.
 */
export async function enforce(arrival: Arrival, parts: Parts): Promise<void> {
  const exchange = new Exchange(arrival, parts.clock.steady())
  parts.watch.add(exchange)
  exchange.res.on('close', () => settle(exchange, parts))
  try {
    let refusal: Step = authenticate(exchange, parts)
    if (refusal instanceof Promise) refusal = await refusal
    refusal ??=
      readTarget(exchange) ?? limit(exchange, parts) ?? passCircuit(exchange, parts) ?? decide(exchange, parts)
    if (refusal instanceof Promise) refusal = await refusal
    refusal ??= attachCredentials(exchange, parts) ?? carryOut(exchange, parts)
    if (refusal instanceof Promise) refusal = await refusal
    if (refusal !== undefined) answer(exchange, refusal)
  } catch (error) {
    parts.report('a request failed', error)
    answer(exchange, refuse('internal'))
  }
}

/** What was not refused is forwarded, or held for a person unless one has let the like of it pass before. */
function carryOut(exchange: Exchange, parts: Parts): Step {
  return exchange.effect === 'Hitl' ? review(exchange, parts) : pass(exchange, parts)
}

async function review(exchange: Exchange, parts: Parts): Promise<Refusal | undefined> {
  const granted = await useGrant(exchange, parts)
  if (isRefusal(granted)) return granted
  return granted ? pass(exchange, parts) : suspend(exchange, parts)
}

function pass(exchange: Exchange, parts: Parts): undefined {
  return isLastHop(exchange) ? answerOptions(exchange) : forward(exchange, parts)
}

function readTarget(exchange: Exchange): Refusal | undefined {
  const target = parseTarget(exchange.rawTarget)
  if (typeof target === 'string') return refuse('invalid_target', target)
  exchange.target = target
  return undefined
}

function answer(exchange: Exchange, refusal: Refusal): void {
  exchange.refusal = refusal.refusal
  exchange.ending ??= 'refused'
  sendRefusal(exchange.res, refusal, exchange.requestId)
}

/** The rest of the request was malformed, and that is what its client was told. */
function noteReplaced(exchange: Exchange): void {
  const code = replacedBy(exchange.res)
  if (code === undefined) return
  exchange.refusal = code
  exchange.ending = 'refused'
}

/** The end of every exchange, however it went: the permit goes back, and whoever counts is told. */
function settle(exchange: Exchange, parts: Parts): void {
  exchange.sender?.clientClosed()
  parts.watch.remove(exchange)
  leaveLimit(exchange, parts)
  noteReplaced(exchange)
  exchange.ending ??= 'aborted'
  closeCircuit(exchange, 'neutral', parts)
  parts.settled(exchange)
}
