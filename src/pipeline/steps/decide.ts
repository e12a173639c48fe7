/** The decision on a call: on its head, its body or what it has spent; and on a body that others want to read before it is sent. */
import { isRefusal } from '../../base/refusals.ts'
import { BodyDecision, decideHead } from '../../policy/evaluation/decide.ts'
import type { Decision, NeedBody } from '../../policy/evaluation/decision.ts'
import type { Rulebook } from '../../policy/evaluation/rulebook.ts'
import type { RequestHead } from '../../policy/request/input.ts'
import { wantBody } from '../answers/readers.ts'
import { noteSpent } from '../budgets/spend-facts.ts'
import { wantsSample } from '../ends/recording.ts'
import type { Checked, Decided, StepOutcome, StepResult } from '../exchange.ts'
import { maxCancellation, readCancellation } from '../mcp/json-rpc.ts'
import { cancelsHeld, mayCancel } from '../mcp/requests.ts'
import type { Call, CallKind } from '../outbound/call.ts'
import { live, receiveBody } from '../outbound/live.ts'
import { pickCredentials } from '../outbound/upstream-request.ts'
import type { OutboundParts, Parts } from '../parts.ts'
import { readAhead } from '../read-ahead.ts'
import { findAddresses, firstOnly, passCircuit } from './origin.ts'

/**
 * Asks for a decision. The body is read only when the head is not enough (spec 1, 4.4). The name is looked up after the
 * decision, unless a rule reads the address: a refused request must not leak anything in a DNS query.
 */
export function decide<C extends Call>(call: C, parts: OutboundParts, kind: CallKind<C>): Checked | Promise<Checked> {
  const rulebook = parts.rulebookOf(call.agent)
  call.rulebook = rulebook
  if (rulebook.readsSpend) return decideOnSpend(call, rulebook, parts, kind)
  return decideOnFacts(call, rulebook, parts, kind)
}

/** What is spent is known already, as a rule. */
function decideOnSpend<C extends Call>(
  call: C,
  rulebook: Rulebook,
  parts: OutboundParts,
  kind: CallKind<C>,
): Checked | Promise<Checked> {
  const noted = noteSpent(call, parts.budgets)
  if (noted === undefined) return decideOnFacts(call, rulebook, parts, kind)
  return noted.then(() => {
    if (call.isOver) return undefined
    // Other rules may be in force now.
    return kind.stillHolds(call, parts) ?? decideOnFacts(call, rulebook, parts, kind)
  })
}

const decideOnFacts = <C extends Call>(
  call: C,
  rulebook: Rulebook,
  parts: OutboundParts,
  kind: CallKind<C>,
): Checked | Promise<Checked> =>
  rulebook.readsDestination ? decideOnAddress(call, rulebook, parts, kind) : decideOnHead(call, rulebook, parts, kind)

async function decideOnAddress<C extends Call>(
  call: C,
  rulebook: Rulebook,
  parts: OutboundParts,
  kind: CallKind<C>,
): Promise<Checked> {
  const unreachable = await findAddresses(call, parts)
  if (unreachable !== undefined) return unreachable
  if (call.resolution !== undefined) call.resolution = firstOnly(call.resolution)
  return decideOnHead(call, rulebook, parts, kind)
}

function decideOnHead<C extends Call>(
  call: C,
  rulebook: Rulebook,
  parts: OutboundParts,
  kind: CallKind<C>,
): Checked | Promise<Checked> {
  const head = kind.viewOf(call, parts)
  const start = startOf(parts)
  const first = decideHead(rulebook, head)
  noteTime(call, start, parts)
  if ('need' in first) return decideOnBody(call, { rulebook, head, first }, parts, kind)
  call.decision = first
  return kind.judge(call, first, parts)
}

/** A decision that needs the body. */
interface Open {
  readonly rulebook: Rulebook
  readonly head: RequestHead
  /** Undefined when the head was enough for the decision, but not for its risk score. */
  readonly first: NeedBody | undefined
}

async function decideOnBody<C extends Call>(
  call: C,
  { rulebook, head, first }: Open,
  parts: OutboundParts,
  kind: CallKind<C>,
): Promise<Checked> {
  const body = await kind.bodyOf(call, parts)
  if (isRefusal(body)) return body
  const open = new BodyDecision(rulebook, head, first, body)
  const taken = takeTurns(call, open, parts)
  const decision = taken instanceof Promise ? await taken : taken
  if (decision === undefined || call.isOver) return undefined
  // The body may have taken minutes. Without the right to go on the name is not looked up either.
  const changed = kind.stillHolds(call, parts)
  if (changed !== undefined) return changed
  call.decision = decision
  if (parts.tracing !== undefined) call.names = open.names
  return kind.judge(call, decision, parts)
}

/** Decides again with the body when the head alone decided: the risk must be computed over the whole request. */
function decideWhole<C extends Call>(call: C, parts: OutboundParts, kind: CallKind<C>): Checked | Promise<Checked> {
  const { decision, rulebook } = call
  if (rulebook === undefined || decision?.phase !== 'head') return undefined
  return decideOnBody(call, { rulebook, head: kind.viewOf(call, parts), first: undefined }, parts, kind)
}

/**
 * Decides short bodies at once while this round of the event loop has capacity, and others in turns, so that neither their
 * content nor their number blocks it. Undefined when the call is over.
 */
function takeTurns(
  call: Call,
  open: BodyDecision,
  parts: OutboundParts,
): Decision | undefined | Promise<Decision | undefined> {
  if (call.isOver) return undefined
  const begun = !open.isLong && parts.workTurns.hasCapacity
  const decision = begun ? takeTurn(call, open, parts) : undefined
  return decision ?? awaitTurns(call, open, { parts, begun })
}

interface TurnTerms {
  readonly parts: OutboundParts
  /** It has had a turn. */
  readonly begun: boolean
}

async function awaitTurns(call: Call, open: BodyDecision, { parts, begun }: TurnTerms): Promise<Decision | undefined> {
  const { id } = call.agent
  const { bytes } = open
  readAhead.add(id, bytes)
  try {
    for (let again = begun; ; again = true) {
      await parts.workTurns.next(id, again)
      if (call.isOver) return undefined
      const decision = takeTurn(call, open, parts)
      if (decision !== undefined) return decision
    }
  } finally {
    readAhead.remove(id, bytes)
  }
}

function takeTurn(call: Call, open: BodyDecision, parts: OutboundParts): Decision | undefined {
  const start = startOf(parts)
  const decision = open.takeTurn()
  noteTime(call, start, parts)
  parts.workTurns.spend(open.steps)
  return decision
}

/** Time on the CPU for the log, without the wait for the body in between. The clock costs time too. */
const startOf = ({ config, clock }: OutboundParts): number => (config.Logging.Access ? clock.steady() : 0)

function noteTime(call: Call, start: number, { config, clock }: OutboundParts): void {
  if (config.Logging.Access) call.decisionNs += Math.round((clock.steady() - start) * 1e6)
}

/** Reads a short body that may cancel a held request, that a reader of answers wants to see, or that is sampled. */
export function readEarly(exchange: Decided, parts: Parts): StepResult {
  if (!exchange.hasBody || exchange.body !== undefined || exchange.effect === 'Hitl') return undefined
  if (mayCancel(exchange, parts)) return readMessage(exchange, parts)
  const isWanted = wantBody(exchange, parts.readers) || wantsSample(exchange, parts)
  return isWanted ? readWanted(exchange, parts) : undefined
}

/** Decides with a short body what the head alone had decided. A longer one, whose length was unknown, is streamed. */
async function readMessage(exchange: Decided, parts: Parts): Promise<StepOutcome> {
  const held = await receiveBody(exchange, maxCancellation, parts)
  if (isRefusal(held)) return held
  if (exchange.isOver) return undefined
  if (!held.complete) return passCircuit(exchange, parts)
  // The rule that decides now may name another credential.
  return (await decideWhole(exchange, parts, live)) ?? pickCredentials(exchange, parts)
}

async function readWanted(exchange: Decided, parts: Parts): Promise<StepOutcome> {
  const held = await receiveBody(exchange, exchange.fields.contentLength, parts)
  if (isRefusal(held)) return held
  return exchange.isOver ? undefined : passCircuit(exchange, parts)
}

/** A body that was read may cancel a held request of an MCP client. */
export function cancel(exchange: Decided, parts: Parts): StepResult {
  const { body, effect } = exchange
  if (body === undefined || effect === 'Hitl' || readCancellation(body) === undefined) return undefined
  return cancelsHeld(exchange, body, parts).then(isDone => (isDone ? 'answered' : undefined))
}
