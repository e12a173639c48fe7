import type { Target } from '../base/target.ts'
import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import { downstreamFields, upstreamFields } from '../http/headers.ts'
import { requestIdField } from '../http/names.ts'
import { resetConnection } from '../http/reset.ts'
import { retries } from '../telemetry/layout.ts'
import { withCredentials } from '../upstream/credentials.ts'
import { failureKind, isPublicDestination, noteFailure, outcomeOfError, refuseFailure } from '../upstream/failure.ts'
import type { Control, Lease, ResponseHead, UpstreamHandler, UpstreamRequest } from '../upstream/handler.ts'
import { mostInterim, StaleConnectionError, tooManyInterim } from '../upstream/handler.ts'
import { noteStreamed } from '../upstream/read-buffers.ts'
import type { Resolution } from '../upstream/resolve.ts'
import { answer } from './answer.ts'
import { AnswerBody } from './answer-body.ts'
import { answerFields } from './answer-fields.ts'
import { closeCircuit, outcomeOfStatus } from './circuit.ts'
import type { Exchange, Sender } from './exchange.ts'
import { freeKey } from './free-key.ts'
import { letGo } from './hold-body.ts'
import { pairs, passInterim } from './interim.ts'
import { countHop } from './last-hop.ts'
import type { Parts } from './parts.ts'
import { maySendAgain } from './retry.ts'
import { holds, isOver } from './rights.ts'

/** Responses up to this length are sent in one write with their head, bytes. */
const oneWriteBytes = 65_536
/** Up to this length node joins head and body as one string, which costs less than writing two pieces, bytes. */
const oneStringBytes = 2_048

/** Starts a request again whose right to go on has changed. */
type Again = (exchange: Exchange, parts: Parts) => Promise<void>

/** An exchange whose destination has been checked. */
type Checked = Exchange & { readonly target: Target; readonly resolution: Resolution }

const isChecked = (exchange: Exchange): exchange is Checked =>
  exchange.target !== undefined && exchange.resolution !== undefined

/** Sends the request upstream and streams the answer back. Returns at once; the handler does the rest. */
export function forward(exchange: Exchange, parts: Parts, again: Again): undefined {
  if (!isChecked(exchange)) throw new Error('cannot happen: forwarded before the checks')
  // A client that left meanwhile needs no answer, and nothing else would cancel the request.
  if (isOver(exchange)) return undefined
  exchange.continue()
  const request = upstreamRequest(exchange, parts)
  exchange.sentAt = parts.clock.steady()
  new Forward(exchange, request, parts, again).send(request)
}

/** The upstream request: the decided bytes, or the body as it comes (spec 4.4, forwarding rules). */
function upstreamRequest(exchange: Checked, parts: Parts): UpstreamRequest {
  const fields = requestFields(exchange, parts)
  return {
    agentId: exchange.agent?.id ?? '',
    method: exchange.req.method as string,
    path: exchange.target.requestTarget,
    fields: exchange.credentials === undefined ? fields : withCredentials(fields, exchange.credentials),
    body: exchange.body ?? (exchange.hasBody ? exchange.req : null),
    // A length that was announced stays announced; node's parser sees that it is kept.
    bodyLength: exchange.fields.contentLength > 0 ? exchange.fields.contentLength : undefined,
  }
}

/** The fields of the upstream request; those that frame its body are for the connection to set. */
export function requestFields(exchange: Exchange, parts: Parts): string[] {
  const headers = upstreamFields(exchange.req.rawHeaders, exchange.fields, exchange.tokenNames)
  if (parts.config.Proxy.Via) headers.push('Via', viaOf(exchange.req.httpVersion))
  return exchange.req.method === 'OPTIONS' ? countHop(headers) : headers
}

/** Pseudonym of this gateway in `Via` (RFC 9110 section 7.6.3): a request that arrives with it is a loop. */
export const viaName = 'agent-gateway'
const viaOf = (httpVersion: string) => `${httpVersion} ${viaName}`

/** Takes the upstream's answer and passes it on as it comes (spec 4.4, rule 5). */
class Forward implements UpstreamHandler, Sender {
  lease: Lease | undefined = undefined
  readonly #exchange: Checked
  readonly #request: UpstreamRequest
  readonly #parts: Parts
  readonly #again: Again
  #control: Control | undefined = undefined
  /** Body bytes still to come before a short answer is whole; 0 once that does not matter. */
  #missing = 0
  #interim = 0
  /** Undefined while the answer may still come as a whole. */
  #body: AnswerBody | undefined = undefined
  #done = false

  constructor(exchange: Checked, request: UpstreamRequest, parts: Parts, again: Again) {
    this.#exchange = exchange
    this.#request = request
    this.#parts = parts
    this.#again = again
    exchange.sender = this
  }

  send(request: UpstreamRequest): void {
    const { target, resolution } = this.#exchange
    this.#parts.connections.send(target.origin, resolution, request, this)
  }

  onRequestStart(control: Control): void {
    this.#control = control
    if (this.#done) control.abort(new Error('the client left'))
    // The last moment before its bytes are written: it may have waited for a connection for long.
    else if (!holds(this.#exchange, this.#parts)) this.#beginAgain(control)
    else this.#exchange.takenKey = undefined
  }

  onBodySent(bytes: number): void {
    this.#exchange.bytesUp += bytes
    noteStreamed(bytes)
    // What was held of a body that streams now has left.
    if (this.#exchange.body === undefined && this.#exchange.bytesUp >= this.#exchange.held) {
      letGo(this.#exchange, this.#parts)
    }
    const most = this.#parts.config.Proxy.MaxRequestBytes
    if (most > 0 && this.#exchange.bytesUp > most) this.#giveUp(refuse('body_too_large'))
  }

  onResponseStart({ status, reason, fields: received, contentLength = 0 }: ResponseHead): void {
    const { res, req } = this.#exchange
    this.#exchange.upstreamStatus = status
    closeCircuit(this.#exchange, outcomeOfStatus(status), this.#parts)
    const fields = answerFields(received, this.#exchange.target, this.#parts.config.Proxy)
    fields.push(requestIdField, this.#exchange.requestId)
    // The rest of the upload has no reader any more: nothing behind it on this connection could be trusted.
    if (!req.complete) fields.push('Connection', 'close')
    res.sendDate = false
    res.writeHead(status, reason, fields)
    this.#missing = contentLength <= oneWriteBytes ? contentLength : 0
    if (this.#missing === 0) this.#stream()
  }

  onResponseData(chunk: Buffer): void {
    const { res } = this.#exchange
    this.#exchange.bytesDown += chunk.length
    if (this.#missing > 0 && chunk.length === this.#missing) {
      // The whole answer is here: head and body leave in one write.
      if (chunk.length <= oneStringBytes) res.end(chunk.toString('latin1'), 'latin1')
      else res.end(Buffer.from(chunk))
      return
    }
    this.#missing = 0
    this.#stream().add(chunk)
  }

  onResponseEnd(trailers: readonly string[]): void {
    if (this.#done) return
    this.#done = true
    const { res } = this.#exchange
    this.#exchange.ending = 'forwarded'
    this.lease?.release(true)
    if (trailers.length > 0) res.addTrailers(pairs(downstreamFields(trailers)))
    if (this.#body === undefined) res.end()
    else this.#body.end()
  }

  onResponseError(error: Error): void {
    this.lease?.release(false)
    if (this.#done || this.#sendAgain(error)) return
    this.#done = true
    const { req, hasBody, agent, requestId } = this.#exchange
    const kind = failureKind(error)
    noteFailure(kind, { agentId: agent?.id, requestId }, this.#parts)
    const clientFault = hasBody && req.destroyed && !req.complete
    closeCircuit(
      this.#exchange,
      clientFault ? 'neutral' : outcomeOfError(error, this.#control !== undefined),
      this.#parts,
    )
    const refusal = refuseFailure(kind, isPublicDestination(this.#exchange.resolution))
    // The answer comes when the key is free: the client may try again at once.
    if (this.#exchange.takenKey === undefined) this.#fail(refusal)
    else void freeKey(this.#exchange, this.#parts).then(() => this.#fail(refusal))
  }

  onInterim(head: ResponseHead): void {
    this.#interim += 1
    if (this.#interim > mostInterim) throw tooManyInterim()
    passInterim(this.#exchange, head)
  }

  /** Nothing was sent. The pipeline decides what happens next. */
  #beginAgain(control: Control): void {
    this.#done = true
    this.#exchange.sender = undefined
    control.abort(new Error('the right to go on has changed'))
    void this.#again(this.#exchange, this.#parts)
  }

  /** Once, to the same addresses. Its right to go on is asked again when it starts. */
  #sendAgain(error: Error): boolean {
    const exchange = this.#exchange
    const started = this.#control !== undefined
    if (started && !this.#parts.config.Proxy.RetryIdempotent) return false
    if (exchange.sentAgain || !maySendAgain(error, this.#request, started)) return false
    exchange.sentAgain = true
    this.#parts.metrics?.add(retries, 1)
    exchange.bytesUp = 0
    this.lease = undefined
    this.#control = undefined
    this.send({ ...this.#request, fresh: error instanceof StaleConnectionError })
    return true
  }

  #stream(): AnswerBody {
    if (this.#body !== undefined) return this.#body
    this.#body = new AnswerBody(this.#exchange.res, { onFull: () => this.#stalled(), onDrained: () => this.#drained() })
    return this.#body
  }

  #stalled(): void {
    this.#control?.pause()
    this.#exchange.stalledSince = this.#parts.clock.steady()
  }

  #drained(): void {
    this.#exchange.stalledSince = undefined
    this.#control?.resume()
  }

  /** Ends the exchange on our own account: the upstream request is cut off, not completed short. */
  #giveUp(refusal: Refusal): void {
    if (this.#done) return
    this.#done = true
    closeCircuit(this.#exchange, 'neutral', this.#parts)
    this.#fail(refusal)
    this.#control?.abort(new Error(refusal.refusal))
  }

  #fail(refusal: Refusal): void {
    // Behind a head that has left, a broken connection is the only honest end.
    if (this.#exchange.res.headersSent) breakOff(this.#exchange)
    answer(this.#exchange, refusal)
  }

  clientClosed(): void {
    if (this.#done) return
    this.#done = true
    this.#exchange.ending = 'aborted'
    if (this.#cancel()) return
    this.#control?.abort(new Error('the client left'))
  }

  /** Takes it out of the line of those that wait for a connection. False: it does not wait. */
  #cancel(): boolean {
    return this.#parts.connections.cancel(this.#exchange.target.origin, this, this.#request)
  }

  end(refusal: Refusal): void {
    // Of an answer that came whole the client may still have to take the rest.
    if (this.#done) this.#fail(refusal)
    else {
      this.#cancel()
      this.#giveUp(refusal)
    }
  }
}

/**
 * In HTTP/1.0 a body without a length ends with the connection (RFC 9112 section 6.3): that it was cut short shows only
 * in a reset.
 */
function breakOff({ req, res, socket }: Exchange): void {
  if (req.httpVersion === '1.0') resetConnection(socket)
  else res.destroy()
}
