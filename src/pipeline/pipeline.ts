import { refuse } from '../base/refusals.ts'
import type { LiveSettings } from '../config/live.ts'
import type { ProxyIncoming } from '../http/accept.ts'
import { replacedBy } from '../http/unreadable.ts'
import { answer } from './answer.ts'
import { askReaders, createReaders } from './answers/readers.ts'
import { releaseSpend } from './budgets/reservation.ts'
import { type Admitted, Exchange, type Sendable, type StepOutcome, type StepResult } from './exchange.ts'
import { readRefused } from './mcp/requests.ts'
import type { CallKind, OutboundStep } from './outbound/call.ts'
import { forward } from './outbound/forward.ts'
import { live } from './outbound/live.ts'
import { answerLastHop, awaitCredentials, pickCredentials } from './outbound/upstream-request.ts'
import type { OutboundParts, Parts, Reviews } from './parts.ts'
import { admit, checkHandshake, checkSize, intercept, releaseSlot } from './steps/admit.ts'
import { authenticate, refuseMisplaced } from './steps/authenticate.ts'
import { cancel, decide, readEarly } from './steps/decide.ts'
import { freeUnsent, releaseBody } from './steps/hold-body.ts'
import { checkName, lookUp, passCircuit, releasePermit } from './steps/origin.ts'
import { checkKey, giveBackUse, passBudgets, releaseUse, review } from './steps/review.ts'

/** The steps of each call before it is sent, in order: of one that arrives, and of a held one once it is approved. */
export const outbound: readonly OutboundStep[] = [
  { name: 'host name', run: checkName },
  { name: 'decision', run: decide },
  { name: 'look-up', run: lookUp },
  { name: 'credentials', run: pickCredentials },
]

/**
 * The steps of a proxied request, in order (spec 4.4): a request is forwarded only if the agent is active, within its
 * rate, the circuit is closed, and the decision allows it. A step returns a refusal, or nothing and the next one
 * follows. It returns a promise only when it must wait, since a needless microtask costs time.
 */
const steps: readonly PipelineStep[] = [
  { name: 'authentication', run: authenticate },
  { name: 'misplaced token', run: refuseMisplaced },
  { name: 'admission', run: admit },
  { name: 'interception', run: intercept },
  { name: 'handshake', run: checkHandshake },
  { name: 'circuit', run: passCircuit },
  { name: 'size', run: checkSize },
  ...outbound,
  { name: 'early body', run: readEarly },
  { name: 'cancellation', run: cancel },
  { name: 'review', run: review },
  { name: 'idempotency key', run: checkKey },
  { name: 'last hop', run: answerLastHop },
  { name: 'budgets', run: passBudgets },
  { name: 'answer readers', run: askReaders },
  { name: 'values of credentials', run: awaitCredentials },
  { name: 'sending', run: (exchange, parts) => forward(exchange, parts, start) },
]

interface PipelineStep {
  /** For the log, when it throws. */
  readonly name: string
  /** Reads what the steps before it have set. */
  run(exchange: Sendable, parts: Parts, kind: CallKind<Admitted>): StepResult
}

/**
 * Each releases one kind of reservation at the end of an exchange. It does nothing when there is none, or when it was
 * released before.
 */
const reservations: readonly ((exchange: Exchange, parts: Parts) => void)[] = [
  releaseSlot,
  releaseBody,
  releasePermit,
  releaseUse,
  releaseSpend,
]

/** Enforces policy on each request. Returns at once; the steps answer the request. */
export function createPipeline(
  outboundParts: OutboundParts,
  { queue, grants, noteTools }: Reviews,
  onSettings: LiveSettings['onChange'],
): (arrival: ProxyIncoming) => undefined {
  const some = { ...outboundParts, queue, grants, noteTools }
  const parts: { -readonly [P in keyof Parts]: Parts[P] } = { ...some, readers: createReaders(some) }
  onSettings(() => () => {
    parts.readers = createReaders(some)
  })
  return arrival => {
    const exchange = new Exchange(arrival, parts.clock.steady())
    parts.watch.add(exchange)
    exchange.res.on('close', () => close(exchange, parts))
    start(exchange, parts)
  }
}

/** A request starts at most this often. Its rights, and its credentials, rarely change more often while it waits. */
const maxRounds = 5

const changedTooOften = refuse(
  'busy',
  'The rights of this request, or its credential, changed again and again while it waited. Nothing was sent: try again.',
)

/** Runs all steps, at first and again when the right to go on has changed while the request waited. */
function start(exchange: Exchange, parts: Parts): void {
  exchange.rounds += 1
  // The settings of Egress may have changed as well.
  exchange.resolution = undefined
  releaseSpend(exchange, parts)
  if (exchange.rounds > maxRounds) void giveUp(exchange, parts)
  else if (exchange.unsentUse === undefined || exchange.usedGrant !== undefined) proceed(exchange, parts, 0)
  else void giveBackUse(exchange, parts).then(() => proceed(exchange, parts, 0))
}

/** It may be tried again at once. */
async function giveUp(exchange: Exchange, parts: Parts): Promise<void> {
  await giveBackUse(exchange, parts)
  if (!exchange.isOver) conclude(exchange, changedTooOften, parts)
}

/** Runs the steps from number `first` on. After a step that waits, `resume` runs the rest. */
function proceed(exchange: Exchange, parts: Parts, first: number): void {
  // The client left, or the request was ended. A step that saw this may have left its work undone.
  if (exchange.isOver) return
  let at = first
  try {
    for (; at < steps.length; at++) {
      // The steps before this one have set all that it reads.
      const outcome = steps[at]!.run(exchange as Sendable, parts, live)
      if (outcome === undefined) continue
      if (outcome instanceof Promise) void resume(exchange, outcome, { parts, at })
      else conclude(exchange, outcome, parts)
      return
    }
  } catch (error) {
    fail(exchange, error, parts, steps[at])
  }
}

interface WaitingStep {
  readonly parts: Parts
  /** Number of the step that waits. */
  readonly at: number
}

async function resume(exchange: Exchange, waited: Promise<StepOutcome>, { parts, at }: WaitingStep): Promise<void> {
  try {
    const outcome = await waited
    if (exchange.res.closed) freeUnsent(exchange, parts)
    else if (outcome === undefined) proceed(exchange, parts, at + 1)
    else if (!exchange.isOver) conclude(exchange, outcome, parts)
  } catch (error) {
    fail(exchange, error, parts, steps[at])
  }
}

function conclude(exchange: Exchange, outcome: NonNullable<StepOutcome>, parts: Parts): void {
  if (outcome === 'again') start(exchange, parts)
  else if (outcome === 'handed over') leave(exchange, parts)
  else if (outcome !== 'answered') {
    readRefused(exchange, outcome, parts).then(
      () => answer(exchange, outcome),
      (error: unknown) => fail(exchange, error, parts),
    )
  }
}

function fail(exchange: Exchange, error: unknown, parts: Parts, step?: PipelineStep): void {
  parts.report(step === undefined ? 'a request failed' : `a request failed at the step "${step.name}"`, error)
  answer(exchange, refuse('internal'))
}

/** The connection now carries other requests, which are counted and logged. */
function leave(exchange: Exchange, parts: Parts): void {
  for (const release of reservations) release(exchange, parts)
  parts.watch.remove(exchange)
}

/** Ends every other exchange: at once, or when the rest of its answer was metered. */
function close(exchange: Exchange, parts: Parts): void {
  const reading = exchange.meter === undefined ? undefined : exchange.sender?.readOn?.()
  if (reading === undefined) finish(exchange, parts)
  else void reading.then(() => finish(exchange, parts))
}

function finish(exchange: Exchange, parts: Parts): void {
  exchange.sender?.clientClosed()
  // The client may have got another refusal because the rest of its request was malformed.
  const replaced = exchange.res.writableFinished ? undefined : replacedBy(exchange.res)
  if (replaced !== undefined) {
    exchange.refusal = replaced
    exchange.ending = 'refused'
  }
  exchange.ending ??= 'aborted'
  const at = parts.clock.steady()
  try {
    // The log tells what an answer that broke off was charged.
    releaseSpend(exchange, parts)
  } catch (error) {
    parts.report('a call was not charged', error)
  }
  for (const listener of parts.ends) {
    try {
      listener.ended(exchange, at)
    } catch (error) {
      parts.report(`the end of a request was not noted: ${listener.name}`, error)
    }
  }
  // The memory of the body is reused: the listeners have read its length before.
  for (const release of reservations) release(exchange, parts)
  // A gateway that stops waits for what is in flight: by then it is charged.
  parts.watch.remove(exchange)
}
