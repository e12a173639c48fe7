/**
 * A call whose request is held. It waits as long as its rule or its client says, and uses no thread, body or upstream
 * connection meanwhile. Then it gets the outcome, or the address to poll.
 */
import { type Refusal, refuse } from '../../base/refusals.ts'
import type { Suspended } from '../../hitl/model.ts'
import type { DetailView } from '../../hitl/view.ts'
import { waitingForReview } from '../../http/follow-connections.ts'
import { fieldValues } from '../../http/headers.ts'
import { prefersJson } from '../../http/media-types.ts'
import { requestIdField } from '../../http/names.ts'
import { longestWait, preferenceApplied, statedWait } from '../../http/prefer.ts'
import { sendReply } from '../../http/respond.ts'
import { providerOfPath } from '../../policy/language/fields/llm.ts'
import type { Checked, Decided } from '../exchange.ts'
import { answerFields, answerStatus } from '../outbound/answer-fields.ts'
import { pairs } from '../outbound/interim.ts'
import type { Parts } from '../parts.ts'
import { isStillAdmitted } from '../rights.ts'

/** When an agent should look again, seconds. */
const pollSeconds = 5
/** How long a call of a model waits when nothing is set, seconds: less than `fetch` of Node waits for an answer, 300. */
const modelWaitSeconds = 240
/** Idle time before TCP keep-alive probes the client, milliseconds. */
const probeAfterMs = 30_000
/** SDKs retry 409 and 5xx by themselves: the request would be held, and sent, a second time. */
const noRetry = ['X-Should-Retry', 'false']

export type WaitTerms = ReturnType<typeof termsOf>

export interface HeldCall {
  readonly suspended: Suspended
  readonly terms: WaitTerms
  readonly cancelKey: string | undefined
}

/**
 * How the call waits: as the client says, else as its rule, else as HumanInTheLoop:WaitSeconds. Without a word of the client,
 * a call of the forward proxy waits ForwardProxy:WaitSeconds at most. SDKs of MCP and of model providers, and clients of the forward proxy, which know nothing of the gateway, take 202 for the
 * answer: they wait unless their rule or their request says otherwise, and get 503.
 */
export function termsOf(exchange: Decided, { config, clock }: Parts) {
  const { decision, req, rpc, claims } = exchange
  const { WaitSeconds, TimeoutSeconds } = config.HumanInTheLoop
  const isUnaware = exchange.addressing.road !== undefined && rpc === undefined
  const terms = decision.decision === 'Allow' ? undefined : decision
  const isModelCall = rpc === undefined && terms?.waitSeconds !== 0 && callsModel(exchange)
  const longest = isUnaware ? config.ForwardProxy.WaitSeconds : TimeoutSeconds
  const set = terms?.waitSeconds ?? (isUnaware ? longest : WaitSeconds)
  const usual = Math.min(set === 0 && isModelCall ? modelWaitSeconds : set, longest)
  const stated = statedWait(req.rawHeaders, Math.max(longestWait, usual))
  const wanted = stated ?? (rpc !== undefined && usual === 0 ? TimeoutSeconds : usual)
  // The agent cannot be given the outcome after its token has expired.
  const left = Math.floor(claims.exp - clock.now() / 1_000)
  const seconds = Math.max(0, Math.min(wanted, left))
  const refusesUnasked = isModelCall || isUnaware || terms?.whenUndecided === 'refused'
  const refused = rpc !== undefined || (stated === undefined && refusesUnasked)
  return {
    seconds,
    /** Its request stays held: unaware clients give up after their own time, and repeat the request. */
    comesAgain: isUnaware && stated === undefined,
    /** `Preference-Applied`, when the client stated a preference. */
    applied: preferenceApplied(stated === undefined ? 0 : seconds),
    /** 503 instead of 202 when nobody decided in time. */
    refused,
  }
}

const callsModel = ({ method, target }: Decided): boolean =>
  method === 'POST' && providerOfPath(target.path) !== undefined

/** Answers the call: at once, or when the outcome is known or the wait is over. */
export async function answerHeld(exchange: Decided, held: HeldCall, parts: Parts): Promise<Checked> {
  const { terms, suspended } = held
  const view = terms.seconds === 0 ? 'undecided' : await waitFor(exchange, held, parts)
  if (exchange.isOver) return undefined
  if (view === 'undecided') {
    return terms.refused ? reviewPending(suspended, parts) : accepted(exchange, held, parts)
  }
  if (view === 'cancelled') {
    exchange.rpc?.endUnanswered()
    return undefined
  }
  // The identity provider may have to be asked about the token again.
  await parts.verifyToken(exchange.token, exchange.socket)
  if (exchange.isOver) return undefined
  if (!isStillAdmitted(exchange, parts)) return refuse('unauthenticated')
  return view === undefined ? expired(suspended) : outcomeOf(exchange, view, parts)
}

class Wait {
  readonly #left = new AbortController()
  readonly #ended = Promise.withResolvers<'unknown'>()
  #isAnswered = false

  /** Aborts when the client leaves. */
  get left(): AbortSignal {
    return this.#left.signal
  }

  /** Resolves when the call is to be answered without a verdict. */
  get ended(): Promise<'unknown'> {
    return this.#ended.promise
  }

  leave(): void {
    if (!this.#isAnswered) this.#left.abort()
  }

  /** Its request stays held: the client has not left. */
  end(): void {
    this.#isAnswered = true
    this.#ended.resolve('unknown')
  }
}

async function waitFor(exchange: Decided, held: HeldCall, parts: Parts) {
  const { suspended, terms, cancelKey } = held
  const { res, socket, rpc, requestId } = exchange
  const callWait = new Wait()
  res.once('close', () => callWait.leave())
  // A call that is over already ends like one whose client leaves during the wait.
  if (exchange.isOver) callWait.leave()
  else if (rpc !== undefined && !rpc.call.opensSession) rpc.wait(suspended.id)
  waitingForReview.add(socket)
  socket.setKeepAlive(true, probeAfterMs)
  const call = {
    viewer: exchange.agent,
    requestId,
    ms: terms.seconds * 1_000,
    staysHeld: !terms.refused,
    comesAgain: terms.comesAgain,
    cancelKey,
  }
  exchange.wait = callWait
  const from = parts.clock.steady()
  exchange.review = { from, to: from }
  const wait = parts.queue.waitAsCall(suspended.id, call, callWait.left)
  const view = await Promise.race([wait, callWait.ended]).finally(() => {
    exchange.wait = undefined
    exchange.review = { from, to: parts.clock.steady() }
    waitingForReview.delete(socket)
  })
  if (view === 'cancelled' || view === undefined) return view
  const isUndecided = view === 'unknown' || view.status === 'Pending' || view.replay === 'inFlight'
  return isUndecided ? 'undecided' : view
}

/** The address to poll, for people and for programs (spec 4.4). */
function accepted(exchange: Decided, { suspended, terms: { applied } }: HeldCall, parts: Parts): undefined {
  const { id, expiresAt } = suspended
  const statusUrl = statusUrlOf(suspended, parts)
  const asJson = prefersJson(fieldValues(exchange.req.rawHeaders, 'accept'))
  const until = new Date(expiresAt).toISOString()
  // A path belongs to the host that was called (spec 4.4). On a virtual host it would be the upstream's.
  const location = exchange.addressing.ownLink(statusPath(suspended))
  const note = location === undefined ? ' at the host of the gateway itself' : ''
  const where = location === undefined ? [] : ['Location', location]
  const type = asJson ? 'application/json; charset=utf-8' : 'text/plain; charset=utf-8'
  const body = asJson
    ? JSON.stringify({ id, status: 'Pending', statusUrl, expiresAt: until, retryAfter: pollSeconds })
    : `The request is held for review. Poll ${statusUrl}${note} for the verdict; it lapses at ${until}.\n`
  const headers = [
    ...where,
    'Retry-After',
    String(pollSeconds),
    'Gateway-Hitl-Id',
    id,
    'Content-Type',
    type,
    ...applied,
  ]
  void sendReply(exchange.res, { status: 202, headers, body }, exchange.requestId)
}

const statusPath = ({ id }: Suspended): string => `/hitl/status/${id}`
const statusUrlOf = (suspended: Suspended, { publicUrl }: Parts): string => (publicUrl ?? '') + statusPath(suspended)

function reviewPending(suspended: Suspended, parts: Parts): Refusal {
  const { id, expiresAt } = suspended
  const statusUrl = statusUrlOf(suspended, parts)
  const members = { hitlId: id, statusUrl, expiresAt: new Date(expiresAt).toISOString() }
  return refuse('review_pending', undefined, { members, headers: ['Retry-After', String(pollSeconds)] })
}

function expired({ id }: Suspended): Refusal {
  return refuse('not_found', 'The request expired: nobody decided it in time.', { members: { hitlId: id } })
}

/** The request was sent, or may have been: what is known of it helps the agent more than another attempt. */
function notKept({ id: hitlId, replay, responseStatus: upstreamStatus }: DetailView): Refusal {
  const detail =
    replay === 'completed' && upstreamStatus !== null
      ? `The request was approved and sent, and the upstream answered ${upstreamStatus}. The answer was too long, or took too long, to be kept for this call: HumanInTheLoop:MaxStoredResponseBytes.`
      : undefined
  return refuse('answer_not_kept', detail, { members: { hitlId, upstreamStatus }, headers: noRetry })
}

/** A refusal, or nothing when the agent got the upstream's answer. */
async function outcomeOf(exchange: Decided, view: DetailView, parts: Parts): Promise<Checked> {
  const { id: hitlId, status, replay, comment } = view
  const members = { hitlId }
  if (status === 'Denied') return refuse('hitl_denied', comment ?? undefined, { members: { hitlId, comment } })
  if (status === 'Withdrawn') return refuse('withdrawn', undefined, { members, headers: noRetry })
  if (replay === 'failed') {
    return refuse('upstream_failed', 'The request was approved, but the upstream failed.', {
      members,
      headers: noRetry,
    })
  }
  const answer = replay === 'completed' ? await parts.queue.answer(hitlId, exchange.agent) : undefined
  if (answer === undefined) return notKept(view)
  const { res, rpc, requestId } = exchange
  if (exchange.isOver) return undefined
  exchange.upstreamStatus = answer.status
  if (rpc?.isStream === true) return rpc.deliver(answer, hitlId)
  const callWait = ['Gateway-Hitl-Id', hitlId, requestIdField, requestId]
  res.sendDate = false
  const fields = answerFields(answer.rawHeaders, exchange)
  res.writeHead(answerStatus(answer.status, exchange, fields), [...fields, ...callWait])
  if (answer.trailers.length > 0) res.addTrailers(pairs(answer.trailers))
  res.end(answer.body)
  return undefined
}
