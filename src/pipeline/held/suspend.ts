import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import { identitiesOf } from '../../credentials/placement.ts'
import { type BodyFindings, findInBody } from '../../hitl/findings.ts'
import type { HeldFacts, Suspension } from '../../hitl/model.ts'
import { withoutNominated, withoutTokens } from '../../http/headers.ts'
import { stepsPerTurn } from '../../policy/turns/evaluation.ts'
import type { HitlCall } from '../../storage/store.ts'
import type { SpanIds } from '../../telemetry/tracing/span.ts'
import type { Checked, Decided } from '../exchange.ts'
import { cancelKeyOf, cancelsHeld, readRpc } from '../mcp/requests.ts'
import { requestFields, withoutCoding } from '../outbound/upstream-request.ts'
import type { Parts } from '../parts.ts'
import { holds } from '../rights.ts'
import { holdBody, letGo } from '../steps/hold-body.ts'
import { closeCircuit } from '../steps/origin.ts'
import { doPartsInTurns } from '../work-turns.ts'
import { answerHeld, type HeldCall, termsOf, type WaitTerms } from './held-call.ts'

/** Holds the request for a person. The call waits as its rule or its client says (`held-call.ts`). */
export async function suspend(exchange: Decided, parts: Parts): Promise<Checked> {
  // A held request says nothing about its upstream, and must not keep a probe of the circuit from its own replay.
  closeCircuit(exchange, 'neutral', parts)
  const held = await store(exchange, parts)
  if (held === undefined || held === 'again' || isRefusal(held)) return held
  exchange.hitlId = held.suspended.id
  if (!exchange.isOver) exchange.ending = 'suspended'
  return answerHeld(exchange, held, parts)
}

/**
 * Stores the request. This is a separate function because an async function keeps its variables alive while it waits: the
 * wait for a verdict may be long, and the body must not stay in memory meanwhile.
 */
async function store(exchange: Decided, parts: Parts): Promise<HeldCall | Checked> {
  const missing = await (exchange.credentials && parts.credentials.hold(exchange.credentials))
  if (missing !== undefined || exchange.isOver) return missing
  const body = await wholeBody(exchange, parts)
  if (isRefusal(body)) return body
  if (exchange.isOver) return undefined
  exchange.body = body
  exchange.loan?.keep()
  const findings = await searchBody(exchange, body, parts)
  if (exchange.isOver) return undefined
  // The search of a long body waits for turns.
  if (!holds(exchange, parts)) return 'again'
  if ((await cancelsHeld(exchange, body, parts)) || exchange.isOver) return undefined
  // Cancelling another request waited for the store: the rights may have changed again.
  if (!holds(exchange, parts)) return 'again'
  readRpc(exchange, body, parts)
  const terms = termsOf(exchange, parts)
  const cancelKey = cancelKeyOf(exchange)
  const call = { kind: kindOf(terms), cancelKey }
  const suspended = await parts.queue.suspend({ ...suspensionOf(exchange, body, parts), findings, call })
  exchange.body = undefined
  letGo(exchange, parts)
  exchange.bytesUp = body.length
  return isRefusal(suspended) ? suspended : { suspended, terms, cancelKey }
}

/** The reading thread searches, in turns: the thread of the queue serves people, and one agent may send many long bodies. */
function searchBody(exchange: Decided, body: Buffer, parts: Parts): Promise<BodyFindings | undefined> {
  const search = findInBody(body, heldFields(exchange, parts))
  const steps = Math.min(body.length, stepsPerTurn)
  return doPartsInTurns(search, { agentId: exchange.agent.id, steps, turns: parts.workTurns })
}

function kindOf({ seconds, refused }: WaitTerms): HitlCall['kind'] {
  if (seconds > 0) return 'waits'
  return refused ? 'retries' : 'polls'
}

/** The stored form of the request. */
export function suspensionOf(exchange: Decided, body: Buffer, parts: Parts): Suspension {
  const { target, agent, decision, requestId } = exchange
  if (decision.decision === 'Allow') throw new Error('cannot happen: held without a decision that asks for it')
  return {
    request: { method: exchange.method, url: target.url, rawHeaders: heldFields(exchange, parts), body },
    facts: factsOf(exchange, parts),
    decision,
    budget: decision.source === 'budget' ? exchange.heldBudget : undefined,
    agent,
    idempotencyKey: exchange.fields.idempotencyKey,
    trace: heldTrace(exchange, parts),
    requestId,
  }
}

/** Ids of its span, to which that of its sending is linked; undefined when it is not recorded. */
function heldTrace(exchange: Decided, { tracing }: Parts): SpanIds | undefined {
  const trace = tracing?.settings.Keep.includes('held') ? tracing.keep(exchange) : tracing?.of(exchange)
  return trace?.isKept ? { traceId: trace.traceId, spanId: trace.spanId } : undefined
}

/** Facts for the decision at the approval (decide-held.ts) that are no longer known by then. */
function factsOf({ req, socket, fields, tokenNames, claims, credentials }: Decided, parts: Parts): HeldFacts {
  const tokenDigest = credentials?.find(({ subject }) => subject !== undefined)?.subject?.digest
  const rawHeaders = withoutTokens(withoutNominated(req.rawHeaders, fields), tokenNames)
  const clientIp = parts.clientIpOf(socket, req.rawHeaders)
  return { rawHeaders, claims, clientIp, credentials: identitiesOf(credentials), tokenDigest }
}

/** An answer that is passed on as events of a stream cannot have a content coding. */
function heldFields(exchange: Decided, parts: Parts): readonly string[] {
  const fields = requestFields(exchange, parts)
  return exchange.rpc === undefined ? fields : withoutCoding(fields)
}

async function wholeBody(exchange: Decided, parts: Parts): Promise<Buffer | Refusal> {
  if (exchange.body !== undefined || !exchange.hasBody) return exchange.body ?? Buffer.alloc(0)
  const max = parts.config.HumanInTheLoop.MaxStoredBodyBytes
  const tooLarge = refuse('body_too_large', `A request held for review may have a body of ${max} bytes at most.`)
  if (exchange.fields.contentLength > max) return tooLarge
  exchange.continue()
  const held = await holdBody(exchange, max, parts)
  if (isRefusal(held)) return held
  return held.complete ? held.bytes : tooLarge
}
