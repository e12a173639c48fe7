import type { Refusal } from '../errors.ts'
import { isRefusal, refuse } from '../errors.ts'
import type { HeldFacts, Suspended, Suspension } from '../hitl/model.ts'
import type { DetailView } from '../hitl/view.ts'
import { fieldValues, withoutNominated, withoutTokens } from '../http/headers.ts'
import { requestIdField } from '../http/names.ts'
import { preferenceApplied, preferredWait } from '../http/prefer.ts'
import type { Reply } from '../http/respond.ts'
import { sendReply } from '../http/respond.ts'
import type { AgentRecord } from '../storage/store.ts'
import { answerFields } from './answer-fields.ts'
import { closeCircuit } from './circuit.ts'
import type { Exchange, Outcome } from './exchange.ts'
import { requestFields } from './forward.ts'
import { freeKey } from './free-key.ts'
import { holdBody, letGo } from './hold-body.ts'
import type { Parts } from './parts.ts'
import { holds, isOver, isStillAdmitted } from './rights.ts'

/** When an agent should look again, seconds. */
const pollSeconds = '5'

/** Holds the request for a person: 202 and where to look, or the verdict itself to an agent that waits for it. */
export async function suspend(exchange: Exchange, parts: Parts): Promise<Outcome> {
  // A held request tells nothing of its upstream, and must not keep a probe of the circuit from the request's replay.
  closeCircuit(exchange, 'neutral', parts)
  const suspended = await putAway(exchange, parts)
  if (suspended === undefined || suspended === 'again' || isRefusal(suspended)) return suspended
  exchange.hitlId = suspended.id
  if (isOver(exchange)) return undefined
  exchange.ending = 'suspended'
  const seconds = preferredWait(exchange.req.rawHeaders)
  const verdict = seconds === 0 ? 'pending' : await waitFor({ exchange, id: suspended.id, seconds }, parts)
  if (isOver(exchange)) return undefined
  if (verdict === 'pending') return accepted(exchange, suspended, seconds)
  return verdict === 'answered' ? undefined : verdict
}

/**
 * Puts the request into the store. A function of its own, since an async function keeps its variables alive while it
 * waits: an agent may wait long for its verdict, and the body must be in the store alone by then.
 */
async function putAway(exchange: Exchange, parts: Parts): Promise<Suspended | Outcome> {
  const body = await wholeBody(exchange, parts)
  if (isRefusal(body)) return body
  if (isOver(exchange)) return undefined
  exchange.body = body
  if (!holds(exchange, parts)) return 'again'
  const suspended = await parts.queue.suspend(suspensionOf(exchange, body, parts))
  exchange.body = undefined
  letGo(exchange, parts)
  exchange.bytesUp = body.length
  return suspended
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
    request: { method: req.method as string, url: target.url, rawHeaders: requestFields(exchange, parts), body },
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

/** Where to look, for people and for programs (spec 4.4). */
function accepted(exchange: Exchange, suspended: Suspended, waited: number): undefined {
  const statusUrl = `/hitl/status/${suspended.id}`
  const { id } = suspended
  const asJson = fieldValues(exchange.req.rawHeaders, 'accept').some(value => /\bapplication\/json\b/i.test(value))
  const expiresAt = new Date(suspended.expiresAt).toISOString()
  const reply: Reply = {
    status: 202,
    headers: [
      'Location',
      statusUrl,
      'Retry-After',
      pollSeconds,
      'Content-Type',
      asJson ? 'application/json; charset=utf-8' : 'text/plain; charset=utf-8',
      'Gateway-Hitl-Id',
      id,
      ...preferenceApplied(waited),
    ],
    body: asJson
      ? JSON.stringify({ id, status: 'Pending', statusUrl, expiresAt, retryAfter: Number(pollSeconds) })
      : `The request is held for review. Poll ${statusUrl} for the verdict; it lapses at ${expiresAt}.\n`,
  }
  void sendReply(exchange.res, reply, exchange.requestId)
}

interface Wait {
  readonly exchange: Exchange
  readonly id: string
  readonly seconds: number
}

async function waitFor(wait: Wait, parts: Parts): Promise<'pending' | 'answered' | Refusal> {
  const { exchange, id, seconds } = wait
  const left = new AbortController()
  exchange.res.once('close', () => left.abort())
  const view = await parts.queue.waitForVerdict(id, exchange.agent as AgentRecord, {
    ms: seconds * 1_000,
    signal: left.signal,
  })
  if (!isStillAdmitted(exchange, parts)) return refuse('unauthenticated')
  if (view === undefined) return refuse('not_found', 'The request expired: nobody decided it in time.')
  if (view.status === 'Pending' || view.replay === 'inFlight') return 'pending'
  if (view.status === 'Denied') return denied(view)
  return deliver(wait, view, parts)
}

function denied(view: DetailView): Refusal {
  const members = { hitlId: view.id, comment: view.comment }
  return refuse('hitl_denied', view.comment ?? undefined, { members })
}

/** Gives the agent the upstream's answer to its approved request. */
async function deliver(wait: Wait, view: DetailView, parts: Parts): Promise<'answered' | Refusal> {
  const { exchange, id } = wait
  if (view.replay === 'failed') return refuse('upstream_failed', 'The request was approved, but the upstream failed.')
  const answer = view.replay === 'completed' ? await parts.queue.answer(id, exchange.agent as AgentRecord) : undefined
  if (answer === undefined) return refuse('answer_not_kept')
  if (isOver(exchange)) return 'answered'
  exchange.upstreamStatus = answer.status
  const { res, target } = exchange
  if (target === undefined) throw new Error('cannot happen: answered without a target')
  res.sendDate = false
  const own = ['Gateway-Hitl-Id', id, requestIdField, exchange.requestId]
  res.writeHead(answer.status, [...answerFields(answer.rawHeaders, target, parts.config.Proxy), ...own])
  res.end(answer.body)
  return 'answered'
}
