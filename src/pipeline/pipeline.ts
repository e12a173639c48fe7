import { parseTarget } from '../base/target.ts'
import { isRefusal, type Refusal, refuse } from '../errors.ts'
import type { ProxyIncoming } from '../http/accept.ts'
import { replacedBy } from '../http/unreadable.ts'
import { answer } from './answer.ts'
import { askReaders, wantBody } from './answers/readers.ts'
import { authenticate } from './authenticate.ts'
import { closeCircuit, passCircuit } from './circuit.ts'
import {
  type Admitted,
  type Authenticated,
  type Decided,
  Exchange,
  isSendable,
  type Outcome,
  type Step,
} from './exchange.ts'
import { forward } from './forward.ts'
import { freeKey, useGrant } from './grants.ts'
import { letGo } from './hold-body.ts'
import { answerOptions, isLastHop } from './hops.ts'
import { leaveLimit, limit } from './limit.ts'
import { maxCancellation, readCancellation } from './mcp/json-rpc.ts'
import { cancelsHeld, mayCancel, readRefused } from './mcp/requests.ts'
import { refuseMisplaced } from './misplaced.ts'
import type { CallKind, OutboundStep } from './outbound/call.ts'
import { decide, decideWhole } from './outbound/decide.ts'
import { attachCredentials, checkName, lookUp } from './outbound/destination.ts'
import { live, receiveBody } from './outbound/live.ts'
import type { Parts } from './parts.ts'
import { suspend } from './suspend.ts'
import { checkHandshake, notHeld } from './web-socket.ts'

/** The steps of each call before it is sent, in order: of one that arrives, and of a held one once it is approved. */
export const outbound: readonly OutboundStep[] = [
  { name: 'host name', run: checkName },
  { name: 'decision', run: decide },
  { name: 'look-up', run: lookUp },
  { name: 'credentials', run: attachCredentials },
]

/**
 * The steps of a proxied request, in order (spec 4.4): a request is forwarded only if the agent is active, within its
 * rate, the circuit is closed, and the decision allows it. A step returns a refusal, or nothing and the next one
 * follows. It returns a promise only when it must wait, since a needless microtask costs time.
 */
const steps: readonly PipelineStep[] = [
  { name: 'authentication', run: authenticate },
  { name: 'misplaced token', run: refuseMisplaced },
  { name: 'admission', run: enter },
  { name: 'handshake', run: checkHandshake },
  { name: 'circuit', run: passCircuit },
  { name: 'size', run: checkSize },
  ...outbound,
  { name: 'delivery', run: carryOut },
]

interface PipelineStep {
  readonly name: string
  /** Reads what the steps before it have set. */
  run(exchange: Decided, parts: Parts, kind: CallKind<Admitted>): Step
}

/** Enforces policy on a request. Returns at once; the steps answer the request. */
export function enforce(arrival: ProxyIncoming, parts: Parts): undefined {
  const exchange = new Exchange(arrival, parts.clock.steady())
  parts.watch.add(exchange)
  exchange.res.on('close', () => close(exchange, parts))
  start(exchange, parts)
}

/** A request starts at most this often. Its rights rarely change more often while it waits. */
const mostRounds = 5

/** Takes all steps, at first and whenever the right to go on has changed while the request waited. */
function start(exchange: Exchange, parts: Parts): void {
  exchange.rounds += 1
  if (exchange.rounds > mostRounds) {
    fail(exchange, new Error('cannot happen: the rights of a request changed too often'), parts)
  } else if (exchange.takenKey === undefined) proceed(exchange, parts, 0)
  else void freeKey(exchange, parts).then(() => proceed(exchange, parts, 0))
}

/** Takes the steps from number `first` on. After a step that waits, `resume` takes the rest. */
function proceed(exchange: Exchange, parts: Parts, first: number): void {
  try {
    for (let at = first; at < steps.length; at++) {
      // The steps up to this one have set all that it reads.
      const outcome = steps[at]!.run(exchange as Decided, parts, live)
      if (outcome === undefined) continue
      if (outcome instanceof Promise) void resume(exchange, outcome, { parts, next: at + 1 })
      else conclude(exchange, outcome, parts)
      return
    }
  } catch (error) {
    fail(exchange, error, parts)
  }
}

interface Rest {
  readonly parts: Parts
  readonly next: number
}

async function resume(exchange: Exchange, waited: Promise<Outcome>, { parts, next }: Rest): Promise<void> {
  try {
    const outcome = await waited
    // The client left, or the request was ended. A step that saw this may have left its work undone.
    if (exchange.isOver) return
    if (outcome === undefined) proceed(exchange, parts, next)
    else conclude(exchange, outcome, parts)
  } catch (error) {
    fail(exchange, error, parts)
  }
}

function conclude(exchange: Exchange, outcome: Refusal | 'again', parts: Parts): void {
  if (outcome === 'again') start(exchange, parts)
  else {
    readRefused(exchange, outcome, parts).then(
      () => answer(exchange, outcome),
      (error: unknown) => fail(exchange, error, parts),
    )
  }
}

function fail(exchange: Exchange, error: unknown, parts: Parts): void {
  parts.report('a request failed', error)
  answer(exchange, refuse('internal'))
}

/** Once for each request, even when it starts again. */
function enter(exchange: Authenticated, parts: Parts): Step {
  if (exchange.target !== undefined) return undefined
  // Nothing gives back the place of a request whose client left while its token was verified.
  if (exchange.isOver) return refuse('invalid_request')
  const target = parseTarget(exchange.rawTarget)
  if (typeof target === 'string') return refuse('invalid_target', target)
  exchange.target = target
  return limit(exchange, parts)
}

function checkSize({ fields }: Exchange, { config }: Parts): Refusal | undefined {
  const { MaxRequestBytes } = config.Proxy
  return MaxRequestBytes > 0 && fields.contentLength > MaxRequestBytes ? refuse('body_too_large') : undefined
}

/** Forwards a request that was not refused, or holds it for a person unless a grant covers it. */
function carryOut(exchange: Decided, parts: Parts): Step {
  if (exchange.isOver) return undefined
  if (exchange.effect === 'Hitl' && exchange.fields.webSocket) return notHeld
  if (exchange.effect === 'Hitl') return review(exchange, parts)
  if (exchange.body !== undefined) return passRead(exchange, exchange.body, parts)
  if (mayCancel(exchange, parts)) return readFirst(exchange, parts)
  return exchange.hasBody && wantBody(exchange, parts.readers) ? readShort(exchange, parts) : pass(exchange, parts)
}

/** Reads a body before it is sent, for those who read its answer. */
async function readShort(exchange: Decided, parts: Parts): Promise<Outcome> {
  const held = await receiveBody(exchange, exchange.fields.contentLength, parts)
  if (isRefusal(held)) return held
  return exchange.isOver ? undefined : (passCircuit(exchange, parts) ?? pass(exchange, parts))
}

/** Decides with a short body what the head alone had decided. A longer one, whose length was unknown, is streamed. */
async function readFirst(exchange: Decided, parts: Parts): Promise<Outcome> {
  const held = await receiveBody(exchange, maxCancellation, parts)
  if (isRefusal(held)) return held
  if (exchange.isOver) return undefined
  if (!held.complete) return passCircuit(exchange, parts) ?? pass(exchange, parts)
  return (await decideWhole(exchange, parts, live)) ?? carryOut(exchange, parts)
}

/** A body that was read for the decision may cancel a held request of an MCP client. */
function passRead(exchange: Decided, body: Buffer, parts: Parts): Step {
  if (readCancellation(body) === undefined) return pass(exchange, parts)
  return cancelsHeld(exchange, body, parts).then(done => (done || exchange.isOver ? undefined : pass(exchange, parts)))
}

async function review(exchange: Decided, parts: Parts): Promise<Outcome> {
  const granted = await useGrant(exchange, parts)
  if (isRefusal(granted)) return granted
  return granted ? send(exchange, parts) : suspend(exchange, parts)
}

/** Sends what is allowed, unless its idempotency key names a request that was or may be sent another way. */
function pass(exchange: Decided, parts: Parts): Step {
  const { agent, fields } = exchange
  if (fields.idempotencyKey === undefined) return send(exchange, parts)
  const checked = parts.queue.checkKey(agent.id, fields.idempotencyKey)
  return checked.then(refusal => refusal ?? (exchange.isOver ? undefined : send(exchange, parts)))
}

function send(exchange: Decided, parts: Parts): Step {
  if (isLastHop(exchange)) return answerOptions(exchange)
  if (!isSendable(exchange)) throw new Error('cannot happen: sent before its destination was checked')
  const asked = askReaders(exchange, parts.readers)
  if (asked === undefined) return forward(exchange, parts, start)
  return asked.then(() => (exchange.isOver ? undefined : forward(exchange, parts, start)))
}

/** The end of every exchange: gives back what it holds, and records it. */
function close(exchange: Exchange, parts: Parts): void {
  exchange.sender?.clientClosed()
  parts.watch.remove(exchange)
  leaveLimit(exchange, parts)
  letGo(exchange, parts)
  // The client may have got another refusal because the rest of its request was malformed.
  const replaced = replacedBy(exchange.res)
  if (replaced !== undefined) {
    exchange.refusal = replaced
    exchange.ending = 'refused'
  }
  exchange.ending ??= 'aborted'
  closeCircuit(exchange, 'neutral', parts)
  if (exchange.takenKey !== undefined) void freeKey(exchange, parts)
  parts.recorder.over(exchange)
  exchange.loan?.end()
}
