import { parseTarget } from '../base/target.ts'
import type { Refusal } from '../errors.ts'
import { isRefusal, refuse } from '../errors.ts'
import { replacedBy } from '../http/unreadable.ts'
import { answer } from './answer.ts'
import { authenticate } from './authenticate.ts'
import { closeCircuit, passCircuit } from './circuit.ts'
import { attachCredentials } from './credentials.ts'
import { decide, decideWhole } from './decide.ts'
import type { Arrival, Outcome, Step } from './exchange.ts'
import { Exchange } from './exchange.ts'
import { forward } from './forward.ts'
import { freeKey } from './free-key.ts'
import { letGo } from './hold-body.ts'
import { readCancellation } from './json-rpc.ts'
import { answerOptions, isLastHop } from './last-hop.ts'
import { leaveLimit, limit } from './limit.ts'
import { cancelsHeld, readRefused } from './mcp.ts'
import { refuseMisplaced } from './misplaced.ts'
import type { Parts } from './parts.ts'
import { isOver } from './rights.ts'
import { coversGrant, suspend, useGrant } from './suspend.ts'

/**
 * The steps of a proxied request, top to bottom (spec 4.4): a request is forwarded only if the agent is active,
 * within its rate, the circuit is closed, and the decision allows it. Each step returns a refusal or nothing. A step
 * returns a promise only when it must wait, since a needless microtask costs time.
 */
export function enforce(arrival: Arrival, parts: Parts): Promise<void> {
  const exchange = new Exchange(arrival, parts.clock.steady())
  parts.watch.add(exchange)
  exchange.res.on('close', () => settle(exchange, parts))
  return travel(exchange, parts)
}

/** Most times that a request starts again: its rights hardly change more often while it waits. */
const mostRounds = 5

async function travel(exchange: Exchange, parts: Parts): Promise<void> {
  try {
    for (;;) {
      exchange.rounds += 1
      if (exchange.rounds > mostRounds) throw new Error('cannot happen: the rights of a request did not come to rest')
      if (exchange.takenKey !== undefined) await freeKey(exchange, parts)
      let step: Step = authenticate(exchange, parts)
      if (step instanceof Promise) step = await step
      step ??= refuseMisplaced(exchange, parts)
      if (step instanceof Promise) step = await step
      step ??= enter(exchange, parts) ?? decide(exchange, parts)
      if (step instanceof Promise) step = await step
      step ??= attachCredentials(exchange, parts) ?? carryOut(exchange, parts)
      if (step instanceof Promise) step = await step
      if (step === 'again') continue
      if (step !== undefined) await refuseStep(exchange, step, parts)
      return
    }
  } catch (error) {
    parts.report('a request failed', error)
    answer(exchange, refuse('internal'))
  }
}

/** The steps that count once for each request, even when it starts over. */
function enter(exchange: Exchange, parts: Parts): Refusal | undefined {
  if (exchange.target === undefined) {
    // Nothing gives back the place of a request whose client left while its token was verified.
    if (isOver(exchange)) return refuse('invalid_request')
    const refusal = readTarget(exchange) ?? limit(exchange, parts)
    if (refusal !== undefined) return refusal
  }
  return exchange.permit === undefined ? passCircuit(exchange, parts) : undefined
}

async function refuseStep(exchange: Exchange, refusal: Refusal, parts: Parts): Promise<void> {
  await readRefused(exchange, refusal, parts)
  answer(exchange, refusal)
}

/** Forwards a request that was not refused, or holds it for a person unless a grant covers it. */
function carryOut(exchange: Exchange, parts: Parts): Step {
  if (isOver(exchange)) return undefined
  if (exchange.effect === 'Hitl') return review(exchange, parts)
  return exchange.body === undefined ? pass(exchange, parts) : passRead(exchange, exchange.body, parts)
}

/** What was read to decide on may cancel a held request of an MCP client. */
function passRead(exchange: Exchange, body: Buffer, parts: Parts): Step {
  if (readCancellation(body) === undefined) return pass(exchange, parts)
  return cancelsHeld(exchange, body, parts).then(done => (done || isOver(exchange) ? undefined : pass(exchange, parts)))
}

async function review(exchange: Exchange, parts: Parts): Promise<Outcome> {
  const covered = await coversGrant(exchange, parts)
  if (isRefusal(covered)) return covered
  if (!covered) return suspend(exchange, parts)
  // A grant passes only what the risk of the whole request, body included, would not hold.
  const changed = await decideWhole(exchange, parts)
  if (changed !== undefined || isOver(exchange)) return changed
  if (exchange.effect !== 'Hitl') return pass(exchange, parts)
  const granted = await useGrant(exchange, parts)
  if (isRefusal(granted)) return granted
  return granted ? send(exchange, parts) : suspend(exchange, parts)
}

/** Sends what is allowed, unless its idempotency key names a sending that went, or may go, another way. */
function pass(exchange: Exchange, parts: Parts): Step {
  const { agent, fields } = exchange
  if (agent === undefined || fields.idempotencyKey === undefined) return send(exchange, parts)
  const checked = parts.queue.checkKey(agent.id, fields.idempotencyKey)
  return checked.then(refusal => refusal ?? (isOver(exchange) ? undefined : send(exchange, parts)))
}

function send(exchange: Exchange, parts: Parts): undefined {
  return isLastHop(exchange) ? answerOptions(exchange) : forward(exchange, parts, travel)
}

function readTarget(exchange: Exchange): Refusal | undefined {
  const target = parseTarget(exchange.rawTarget)
  if (typeof target === 'string') return refuse('invalid_target', target)
  exchange.target = target
  return undefined
}

/** Notes the refusal that the client got because the rest of its request was malformed. */
function noteReplaced(exchange: Exchange): void {
  const code = replacedBy(exchange.res)
  if (code === undefined) return
  exchange.refusal = code
  exchange.ending = 'refused'
}

/** The end of every exchange: returns the permit and updates the counters. */
function settle(exchange: Exchange, parts: Parts): void {
  exchange.sender?.clientClosed()
  parts.watch.remove(exchange)
  leaveLimit(exchange, parts)
  letGo(exchange, parts)
  noteReplaced(exchange)
  exchange.ending ??= 'aborted'
  closeCircuit(exchange, 'neutral', parts)
  if (exchange.takenKey !== undefined) void freeKey(exchange, parts)
  parts.settled(exchange)
}
