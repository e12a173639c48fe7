import type { Refusal } from '../errors.ts'
import { isRefusal, refuse } from '../errors.ts'
import type { HeldFacts, Suspension } from '../hitl/model.ts'
import { withoutNominated, withoutTokens } from '../http/headers.ts'
import { closeCircuit } from './circuit.ts'
import type { Exchange, Outcome } from './exchange.ts'
import { requestFields } from './forward.ts'
import { freeKey } from './free-key.ts'
import type { HeldCall } from './held-call.ts'
import { answerHeld, termsOf } from './held-call.ts'
import { holdBody, letGo } from './hold-body.ts'
import { cancelKeyOf, cancelsHeld, readRpc } from './mcp.ts'
import type { Parts } from './parts.ts'
import { holds, isOver } from './rights.ts'

/** Holds the request for a person. The call waits as its rule or its client says (`held-call.ts`). */
export async function suspend(exchange: Exchange, parts: Parts): Promise<Outcome> {
  // A held request tells nothing of its upstream, and must not keep a probe of the circuit from the request's replay.
  closeCircuit(exchange, 'neutral', parts)
  const held = await putAway(exchange, parts)
  if (held === undefined || held === 'again' || isRefusal(held)) return held
  exchange.hitlId = held.suspended.id
  if (!isOver(exchange)) exchange.ending = 'suspended'
  return answerHeld(exchange, held, parts)
}

/**
 * Puts the request into the store. A function of its own, since an async function keeps its variables alive while it
 * waits: an agent may wait long for its verdict, and the body must be in the store alone by then.
 */
async function putAway(exchange: Exchange, parts: Parts): Promise<HeldCall | Outcome> {
  const body = await wholeBody(exchange, parts)
  if (isRefusal(body)) return body
  if (isOver(exchange)) return undefined
  exchange.body = body
  if (!holds(exchange, parts)) return 'again'
  if (await cancelsHeld(exchange, body, parts)) return undefined
  readRpc(exchange, body, parts)
  const terms = termsOf(exchange, parts)
  const suspended = await parts.queue.suspend({ ...suspensionOf(exchange, body, parts), joins: terms.joins })
  exchange.body = undefined
  letGo(exchange, parts)
  exchange.bytesUp = body.length
  return isRefusal(suspended) ? suspended : { suspended, terms, cancelKey: cancelKeyOf(exchange) }
}

/** Whether a reviewer may have let requests like this one pass for a while. */
export function coversGrant(exchange: Exchange, parts: Parts): Promise<boolean | Refusal> {
  return parts.grants.covers(suspensionOf(exchange, Buffer.alloc(0), parts))
}

/** True when a grant lets this request pass; its use is on record then. */
export async function useGrant(exchange: Exchange, parts: Parts): Promise<boolean | Refusal> {
  const used = await parts.grants.use(suspensionOf(exchange, Buffer.alloc(0), parts))
  exchange.grantId = undefined
  if (used === undefined || isRefusal(used)) return used ?? false
  exchange.grantId = used.grant.id
  exchange.takenKey = used.key
  if (isOver(exchange)) await freeKey(exchange, parts)
  return true
}

function suspensionOf(exchange: Exchange, body: Buffer, parts: Parts): Suspension {
  const { target, agent, decision, req, requestId } = exchange
  if (target === undefined || agent === undefined || decision === undefined || decision.decision === 'Allow') {
    throw new Error('cannot happen: held without a decision that asks for it')
  }
  return {
    request: { method: req.method as string, url: target.url, rawHeaders: heldFields(exchange, parts), body },
    facts: factsOf(exchange, parts),
    decision,
    agent,
    idempotencyKey: exchange.fields.idempotencyKey,
    requestId,
  }
}

/** What the decision at the approval cannot find out again (decide-held.ts). */
function factsOf({ req, socket, fields, tokenNames, claims }: Exchange, parts: Parts): HeldFacts {
  const rawHeaders = withoutTokens(withoutNominated(req.rawHeaders, fields), tokenNames)
  return { rawHeaders, claims: claims ?? {}, clientIp: parts.clientIpOf(socket, req.rawHeaders) }
}

/** An answer that goes into a stream that has begun can have no coding of its own. */
function heldFields(exchange: Exchange, parts: Parts): readonly string[] {
  const fields = requestFields(exchange, parts)
  if (exchange.rpc === undefined) return fields
  const kept = fields.filter((_, at) => fields[at - (at % 2)]?.toLowerCase() !== 'accept-encoding')
  return [...kept, 'Accept-Encoding', 'identity']
}

async function wholeBody(exchange: Exchange, parts: Parts): Promise<Buffer | Refusal> {
  if (exchange.body !== undefined || !exchange.hasBody) return exchange.body ?? Buffer.alloc(0)
  const most = parts.config.HumanInTheLoop.MaxStoredBodyBytes
  const tooLarge = refuse('body_too_large', `A request held for review may have a body of ${most} bytes at most.`)
  if (exchange.fields.contentLength > most) return tooLarge
  exchange.continue()
  const held = await holdBody(exchange, most, parts)
  if (isRefusal(held)) return held
  return held.complete ? held.bytes : tooLarge
}
