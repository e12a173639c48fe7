import { type Refusal, refuse } from '../../base/refusals.ts'
import { firstByte, retries } from '../../telemetry/layout.ts'
import {
  failureKind,
  isPublicDestination,
  maySendAgain,
  noteFailure,
  outcomeOfError,
  refuseFailure,
} from '../../upstream/failure.ts'
import {
  type Control,
  MalformedBodyError,
  type ResponseHead,
  StaleConnectionError,
  type UpstreamHandler,
  type UpstreamRequest,
} from '../../upstream/handler.ts'
import { noteStreamed } from '../../upstream/read-buffers.ts'
import { isEventStream } from '../../upstream/settings.ts'
import { chargeWhole, noteSent, readsAnswer } from '../budgets/reservation.ts'
import type { ExchangeSender, Sendable } from '../exchange.ts'
import type { Again, Parts } from '../parts.ts'
import { holds } from '../rights.ts'
import { letGo } from '../steps/hold-body.ts'
import { closeCircuit, outcomeOfStatus } from '../steps/origin.ts'
import { giveBackUse } from '../steps/review.ts'
import { Downstream } from './downstream.ts'
import { passInterim } from './interim.ts'
import { LastBytes } from './last-bytes.ts'
import { OpaqueTunnel } from './opaque-tunnel.ts'
import { isRenewable, RenewedAnswer } from './renewal.ts'
import { guardFields, hasLatestCredentials, noteForbidden, upstreamRequest } from './upstream-request.ts'
import { WebSocketSender } from './web-socket.ts'

/**
 * Sends the request upstream and streams the answer back. Returns at once; the handler does the rest. `again`: a credential has
 * ended since it was ready.
 */
export function forward(exchange: Sendable, parts: Parts, again: Again): 'again' | undefined {
  // Nothing else would cancel the request of a client that has left.
  if (exchange.isOver) return undefined
  if (exchange.isTunnel) return openTunnel(exchange, parts, again)
  if (exchange.resolution === undefined) throw new Error('cannot happen: sent before its destination was checked')
  exchange.continue()
  const request = upstreamRequest(exchange, parts)
  if (request === undefined) return 'again'
  exchange.sentAt = parts.clock.steady()
  if (exchange.body !== undefined) exchange.loan ??= parts.bodyMemory.loanOf(exchange.body)
  const sender = new Forward(exchange, request, parts, again)
  if (exchange.fields.webSocket) new WebSocketSender(exchange, sender, parts).send(request)
  else sender.send(request)
  return undefined
}

function openTunnel(exchange: Sendable, parts: Parts, again: Again): undefined {
  exchange.sentAt = parts.clock.steady()
  noteSent(exchange, true)
  new OpaqueTunnel(exchange, parts, again).send()
}

/** The gateway has no certificate of the client to show. */
const maybePinned =
  'if the upstream asks for a certificate of its client, ForwardProxy:TunnelHosts leaves it to the client'

/** Sends a request, and passes its answer on. */
class Forward extends Downstream implements UpstreamHandler, ExchangeSender {
  #request: UpstreamRequest
  readonly #again: Again
  /** What receives the answer: this, or what stands in front of it. */
  #receiver: UpstreamHandler = this
  #done = false

  constructor(exchange: Sendable, request: UpstreamRequest, parts: Parts, again: Again) {
    super(exchange, parts)
    this.#request = request
    this.#again = again
    exchange.sender = this
    if (exchange.credentials !== undefined && isRenewable(exchange)) {
      this.#receiver = new RenewedAnswer(this, {
        renew: () => this.#renew(),
        place: () => this.#place(),
        resend: () => this.#resend(),
        isOver: () => this.#done,
      })
    }
  }

  send(request: UpstreamRequest): void {
    const { target, resolution } = this.exchange
    this.parts.connections.send(target.origin, resolution, request, this.#receiver)
  }

  onRequestStart(control: Control): void {
    this.control = control
    if (this.#done) control.abort(new Error('the client left'))
    // The last check before the bytes are written: the request may have waited long for a connection.
    else if (!holds(this.exchange, this.parts) || !hasLatestCredentials(this.exchange, this.parts))
      this.#beginAgain(control)
    else {
      this.exchange.unsentUse = undefined
      noteSent(this.exchange, true)
    }
  }

  onBodySent(bytes: number, piece?: Buffer): void {
    if (this.isFenced()) return
    const { interests } = this.exchange
    if (piece !== undefined && interests !== undefined) for (const interest of interests) interest.seeRequest?.(piece)
    this.exchange.bytesUp += bytes
    this.exchange.loan?.begin()
    // TLS leaves buffers behind that nothing else frees.
    if ('encrypted' in this.exchange.socket) noteStreamed(bytes)
    // The held part of a body that streams now was sent.
    if (this.exchange.body === undefined && this.exchange.bytesUp >= this.exchange.held) {
      letGo(this.exchange, this.parts)
    }
    const max = this.parts.config.Proxy.MaxRequestBytes
    if (max > 0 && this.exchange.bytesUp > max && !this.#done) this.#giveUp(refuse('body_too_large'))
  }

  onBodyWritten(): void {
    this.exchange.loan?.finish()
  }

  onResponseStart(head: ResponseHead): void {
    if (this.#done || this.isFenced()) return
    const { exchange, parts } = this
    exchange.upstreamStatus = head.status
    if (head.contentLength === undefined) exchange.isEventStream = isEventStream(head.fields)
    const { sentAt } = exchange
    if (sentAt !== undefined) {
      parts.metrics.observeOf(exchange.target.origin.host, firstByte, (parts.clock.steady() - sentAt) / 1e3)
    }
    closeCircuit(exchange, outcomeOfStatus(head.status), parts)
    const refusal = head.status === 403 ? noteForbidden(exchange, head.fields, parts) : undefined
    if (refusal !== undefined && this.lastBytes === undefined) this.refuse(refusal)
    else if (this.lastBytes === undefined) this.passHead(head)
    else this.seeHead(head, this.lastBytes)
  }

  onResponseEnd(trailers: readonly string[]): void {
    if (this.#done) return
    this.#done = true
    if (this.lastBytes !== undefined) {
      this.exchange.meter?.end(true)
      chargeWhole(this.exchange, this.parts)
      this.lastBytes.end()
    } else if (this.rewriter === undefined) this.finish(trailers)
    else this.rewriter.end()
  }

  onResponseError(error: Error): void {
    if (this.#done || this.#sendAgain(error)) return
    this.#done = true
    if (this.lastBytes !== undefined) {
      this.lastBytes.end()
      return
    }
    const { req, hasBody, agent, requestId, target } = this.exchange
    if (error instanceof MalformedBodyError) {
      closeCircuit(this.exchange, 'neutral', this.parts)
      this.fail(refuse('invalid_request', error.message))
      return
    }
    const kind = failureKind(error)
    noteFailure(kind, { agentId: agent.id, requestId, host: target.origin.host }, this.parts)
    const clientFault = hasBody && req.destroyed && !req.complete
    const { resolution } = this.exchange
    const outcome = clientFault ? 'neutral' : outcomeOfError(error, this.control !== undefined, resolution.isFirstOnly)
    closeCircuit(this.exchange, outcome, this.parts)
    const refused = refuseFailure(kind, isPublicDestination(resolution))
    const isRemedied = kind === 'tls' && this.exchange.addressing.road === 'intercepted'
    const refusal = isRemedied ? { ...refused, cause: maybePinned } : refused
    // The client is answered when grant and key are free, since it may retry at once.
    if (this.exchange.unsentUse === undefined) this.fail(refusal)
    else void giveBackUse(this.exchange, this.parts).then(() => this.fail(refusal))
  }

  onInterim(head: ResponseHead): void {
    if (!this.isFenced())
      passInterim(this.exchange, { ...head, fields: guardFields(head.fields, this.exchange, this.parts) })
  }

  /** Nothing was sent. The pipeline decides what happens next. */
  #beginAgain(control: Control): void {
    this.#done = true
    this.exchange.sender = undefined
    control.abort(new Error('the right to go on has changed'))
    this.#again(this.exchange, this.parts)
  }

  /** Once, to the same addresses. Its right to go on is checked again when it starts. */
  #sendAgain(error: Error): boolean {
    const exchange = this.exchange
    const started = this.control !== undefined
    if (started && !this.parts.config.Proxy.RetryIdempotent) return false
    // A handshake goes over a connection of its own.
    if (exchange.sentAgain || exchange.isUpgraded || !maySendAgain(error, this.#request, started)) return false
    this.#sendOnceMore({ ...this.#request, fresh: error instanceof StaleConnectionError })
    return true
  }

  #sendOnceMore(request: UpstreamRequest): void {
    const { exchange } = this
    const fields = this.parts.tracing?.again(exchange, exchange.sentAt ?? 0, request.fields)
    exchange.sentAgain = true
    this.parts.metrics.add(retries, 1)
    noteSent(exchange, false)
    exchange.bytesUp = 0
    this.control = undefined
    this.send({ ...request, ...(fields && { fields }) })
  }

  async #renew(): Promise<boolean> {
    const { credentials } = this.exchange
    const isNew = credentials !== undefined && (await this.parts.credentials.renew(credentials))
    // A connection that broke meanwhile may have used the second attempt up.
    return isNew && !this.#done && isRenewable(this.exchange)
  }

  #place(): boolean {
    const request = upstreamRequest(this.exchange, this.parts)
    if (request !== undefined) this.#request = request
    return request !== undefined
  }

  /** The upstream refused the credential, and there is another one now. */
  #resend(): void {
    this.#receiver = this
    this.#sendOnceMore(this.#request)
  }

  protected override cutOff(refusal: Refusal): void {
    // There is nobody to answer.
    if (this.lastBytes !== undefined) {
      this.lastBytes.end()
      this.clientClosed()
      return
    }
    // The answer is complete, but the client may not have read all of it.
    if (this.#done) this.fail(refusal)
    else this.#giveUp(refusal)
  }

  #giveUp(refusal: Refusal): void {
    this.#done = true
    closeCircuit(this.exchange, 'neutral', this.parts)
    this.fail(refusal)
    this.control?.abort(new Error(refusal.refusal))
  }

  readOn(): Promise<void> | undefined {
    if (this.#done || this.control === undefined || !this.#tellsMore()) return undefined
    this.exchange.ending = 'aborted'
    this.lastBytes = new LastBytes(() => this.clientClosed())
    if (this.tap !== undefined) this.lastBytes.begin()
    // A client that took nothing is no reason to wait any more.
    this.exchange.stalledSince = undefined
    this.control.resume()
    return this.lastBytes.over
  }

  /**
   * Whether the answer can still tell what the call used. While its head has not come, a budget would be charged with the most,
   * and an agent that leaves all of its calls could empty a budget that it shares.
   */
  #tellsMore(): boolean {
    const { upstreamStatus, spend } = this.exchange
    return this.tap !== undefined || (upstreamStatus === undefined && readsAnswer(spend))
  }

  clientClosed(): void {
    if (this.#done) return
    this.#done = true
    this.exchange.ending = 'aborted'
    if (this.#cancel()) return
    this.control?.abort(new Error('the client left'))
  }

  /** Removes the request from the queue for a connection. False: it does not wait there. */
  #cancel(): boolean {
    return this.parts.connections.cancel(this.exchange.target.origin, this.#receiver, this.#request)
  }

  end(refusal: Refusal): void {
    if (!this.#done) this.#cancel()
    this.cutOff(refusal)
  }
}
