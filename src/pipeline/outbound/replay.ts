import { Readable } from 'node:stream'
import { isRefusal, type Refusal, refuse } from '../../base/refusals.ts'
import type { HeldRequest, ReplayResult, SendContext, SendRequest } from '../../hitl/model.ts'
import { downstreamFields } from '../../http/headers.ts'
import { failureKind, isPublicDestination, noteFailure, outcomeOfError, refuseFailure } from '../../upstream/failure.ts'
import {
  type Control,
  type ResponseHead,
  UpstreamError,
  type UpstreamHandler,
  type UpstreamRequest,
} from '../../upstream/handler.ts'
import type { Resolution } from '../../upstream/resolve.ts'
import type { Tap } from '../answers/interest.ts'
import { noteSent, readsAnswer, settleSpend } from '../budgets/reservation.ts'
import { type CallShape, reserve } from '../budgets/reserve.ts'
import type { Checked } from '../exchange.ts'
import type { OutboundParts } from '../parts.ts'
import { outbound } from '../pipeline.ts'
import { closeCircuit, outcomeOfStatus, passCircuit } from '../steps/origin.ts'
import { type ApprovedCall, approved, credentialProblem, openApproved } from './approved.ts'
import {
  awaitCredentials,
  guardFields,
  hasLatestCredentials,
  noteForbidden,
  withCredentials,
  withoutCoding,
} from './upstream-request.ts'

/**
 * Sends an approved request: it passes the same steps as a proxied one, now, and goes over a connection that nothing else
 * uses (spec 4.5).
 */
export function createSender(parts: OutboundParts): SendRequest {
  return async (request, context) => {
    for (;;) {
      const result = await attempt(request, context, parts)
      // The rules changed during a wait: decide again, as long as the attempt may begin.
      if (result !== 'again') return result
    }
  }
}

type Attempted = ReplayResult | 'again'

async function attempt(request: HeldRequest, context: SendContext, parts: OutboundParts): Promise<Attempted> {
  const call = openApproved(request, context, parts)
  if (isRefusal(call)) return { kind: 'notSent', refusal: call }
  const outcome =
    (await prepare(call, parts)) ??
    (await reserveApproved(call, parts)) ??
    (await awaitCredentials(call, parts, approved)) ??
    (call.isOver ? refuse('draining') : undefined) ??
    passCircuit(call, parts)
  const message = outcome === undefined ? upstreamRequest(call, parts) : undefined
  if (message !== undefined) return send(call, message, parts)
  closeCircuit(call, 'neutral', parts)
  settleSpend(call, { status: undefined, meter: undefined, isWhole: false }, parts)
  // A credential has ended since it was ready.
  return outcome === undefined || outcome === 'again' ? 'again' : { kind: 'notSent', refusal: outcome }
}

async function prepare(call: ApprovedCall, parts: OutboundParts): Promise<Checked> {
  for (const step of outbound) {
    const outcome = await step.run(call, parts, approved)
    if (outcome !== undefined) return outcome
    if (call.isOver) return refuse('draining')
  }
  return credentialProblem(call)
}

const approvedCall: CallShape<ApprovedCall, OutboundParts> = {
  isStream: () => false,
  bodyOf: ({ request }) => Buffer.from(request.body),
}

async function reserveApproved(call: ApprovedCall, parts: OutboundParts): Promise<Refusal | undefined> {
  const outcome = await reserve(call, approvedCall, parts)
  if (outcome !== undefined && 'budget' in outcome) throw new Error('cannot happen: an approved call is held again')
  return outcome ?? (call.isOver ? refuse('draining') : undefined)
}

function send(call: ApprovedCall, message: UpstreamRequest, parts: OutboundParts): Promise<Attempted> {
  const { target, resolution } = call
  if (resolution === undefined) throw new Error('cannot happen: sent before its destination was checked')
  return new Promise(resolve => {
    const replay = new Replay(call, resolution, { parts, resolve })
    parts.connections.sendAlone(target.origin, resolution, message, replay)
  })
}

function upstreamRequest(call: ApprovedCall, parts: OutboundParts): UpstreamRequest | undefined {
  if (parts.config.Metering.Usage || readsAnswer(call.spend)) call.meter = parts.meterOf?.(call)
  const { request, target, context, meter } = call
  const { method, body } = request
  const message = {
    method,
    path: target.requestTarget,
    fields: meter === undefined ? request.rawHeaders : withoutCoding(request.rawHeaders),
    body: body.byteLength === 0 ? null : Buffer.from(body),
    connectWithinMs: Math.max(0, context.sendBefore - parts.clock.steady()),
  }
  return withCredentials(call, message, parts)
}

interface ReplayParts {
  readonly parts: OutboundParts
  readonly resolve: (result: Attempted) => void
}

/** Turns the answer of a replay into a value with a body to read. */
class Replay implements UpstreamHandler {
  readonly #call: ApprovedCall
  readonly #resolution: Resolution
  readonly #parts: OutboundParts
  readonly #resolve: (result: Attempted) => void
  #control: Control | undefined = undefined
  #body: Readable | undefined = undefined
  #tap: Tap | undefined = undefined
  #trailers: readonly string[] = []
  #status: number | undefined = undefined
  /** Why the request was not sent over its connection. */
  #refused: Refusal | 'again' | undefined = undefined

  constructor(call: ApprovedCall, resolution: Resolution, { parts, resolve }: ReplayParts) {
    this.#call = call
    this.#resolution = resolution
    this.#parts = parts
    this.#resolve = resolve
    call.context.abandoned.addEventListener('abort', () => this.#control?.abort(new Error('the gateway stops')))
  }

  onRequestStart(control: Control): void {
    // Another attempt may have begun.
    if (this.#call.context.isLate())
      control.abort(new UpstreamError('connect_timeout', 'the right to send ended before the sending'))
    else {
      const isLatest = hasLatestCredentials(this.#call, this.#parts)
      this.#refused = approved.stillHolds(this.#call, this.#parts) ?? (isLatest ? undefined : 'again')
      // The last check before the bytes are written: the look-up and the dial may have taken long.
      if (this.#refused !== undefined) control.abort(new Error('the right to send is gone'))
      else {
        this.#control = control
        noteSent(this.#call, true)
      }
    }
  }

  onResponseStart(head: ResponseHead): void {
    const { status, fields } = head
    this.#status = status
    this.#tap = this.#call.meter?.watch(head)
    closeCircuit(this.#call, outcomeOfStatus(status), this.#parts)
    noteAnswered(this.#call, status, this.#parts)
    // The reviewer sees the answer as it is.
    if (status === 403) noteForbidden(this.#call, fields, this.#parts)
    const body = new Readable({
      read: () => this.#control?.resume(),
      // The reader may disconnect. Without this the exchange would wait forever.
      destroy: (error, done) => {
        this.#control?.abort(new Error('nobody reads the answer'))
        done(error)
      },
    })
    this.#body = body
    const rawHeaders = downstreamFields(guardFields(fields, this.#call, this.#parts))
    this.#resolve({ kind: 'answered', status, rawHeaders, body, trailers: () => this.#trailers })
  }

  onResponseData(chunk: Buffer): void {
    if (this.#body?.push(Buffer.from(chunk)) === false) this.#control?.pause()
    this.#tap?.see(chunk)
  }

  onResponseEnd(trailers: readonly string[]): void {
    this.#trailers = downstreamFields(guardFields(trailers, this.#call, this.#parts))
    this.#noteUsage(true)
    this.#body?.push(null)
  }

  onResponseError(error: Error): void {
    this.#noteUsage(false)
    if (this.#body !== undefined) {
      this.#body.destroy(error)
      return
    }
    const refused = this.#refused
    const isSent = this.#control !== undefined
    const outcome = refused === undefined ? outcomeOfError(error, isSent, this.#resolution.isFirstOnly) : 'neutral'
    closeCircuit(this.#call, outcome, this.#parts)
    // No byte was sent, so the request can be decided again.
    const kind = isSent ? 'failed' : 'notSent'
    this.#resolve(refused === 'again' ? refused : { kind, refusal: refused ?? this.#refusalOf(error) })
  }

  /** @param isWhole the answer came whole */
  #noteUsage(isWhole: boolean): void {
    const { meter, context, requestId } = this.#call
    const usage = meter?.end(isWhole)
    settleSpend(this.#call, { status: this.#status, meter, isWhole }, this.#parts)
    const { budget, charged } = this.#call
    if (usage === undefined && budget === undefined) return
    const { agentId, hitlId } = context
    for (const listener of this.#parts.ends) {
      listener.replayed?.({ requestId, agentId, hitlId, usage, budget, charged })
    }
  }

  /** The refusal for the reviewer. Counts the failure. */
  #refusalOf(error: Error): Refusal {
    const { context, requestId, target } = this.#call
    const kind = failureKind(error)
    noteFailure(kind, { agentId: context.agentId, requestId, host: target.origin.host }, this.#parts)
    return refuseFailure(kind, isPublicDestination(this.#resolution))
  }
}

function noteAnswered(call: ApprovedCall, status: number, { ends }: OutboundParts): void {
  const { agent, target, method, rawHeaders, request, decision } = call
  if (decision === undefined) throw new Error('cannot happen: an approved request was sent before its decision')
  const answered = { agent, target, method, rawHeaders, body: request.body, decision }
  for (const listener of ends) listener.approved?.(answered, status)
}
