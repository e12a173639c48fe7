import { isRefusal, type Refusal, refuse } from '../errors.ts'
import { downstreamFields } from '../http/headers.ts'
import { requestIdField } from '../http/names.ts'
import { takeBackHead } from '../http/take-back.ts'
import { retries } from '../telemetry/layout.ts'
import {
  failureKind,
  isPublicDestination,
  maySendAgain,
  noteFailure,
  outcomeOfError,
  refuseFailure,
} from '../upstream/failure.ts'
import {
  type Control,
  type ResponseHead,
  StaleConnectionError,
  type UpstreamHandler,
  type UpstreamRequest,
} from '../upstream/handler.ts'
import { noteStreamed } from '../upstream/read-buffers.ts'
import { answer, breakOff } from './answer.ts'
import { AnswerBody, oneStringBytes } from './answer-body.ts'
import { answerFields } from './answer-fields.ts'
import { closeCircuit, outcomeOfStatus } from './circuit.ts'
import type { Exchange, Sendable, Sender } from './exchange.ts'
import { freeKey } from './grants.ts'
import { letGo } from './hold-body.ts'
import { upstreamRequest } from './hops.ts'
import { pairs, passInterim } from './interim.ts'
import { readingOf, searchUnread } from './mcp/asks.ts'
import { readRpc } from './mcp/requests.ts'
import { type Output, openToolAnswer, type ToolAnswer, withLength } from './mcp/tool-answer.ts'
import type { Parts } from './parts.ts'
import { holds } from './rights.ts'
import { WebSocketSender } from './web-socket.ts'

/** Responses up to this length are sent in one write with their head, bytes. */
const oneWriteBytes = 65_536

/** Node sends no body after one of these statuses was set, even if the status is replaced. */
const bodiless = new Set([204, 304])

/** Starts a request again whose right to go on has changed. */
type Again = (exchange: Exchange, parts: Parts) => void

/** Sends the request upstream and streams the answer back. Returns at once; the handler does the rest. */
export function forward(exchange: Sendable, parts: Parts, again: Again): undefined {
  // Nothing else would cancel the request of a client that has left.
  if (exchange.isOver) return undefined
  exchange.continue()
  const request = upstreamRequest(exchange, parts)
  exchange.sentAt = parts.clock.steady()
  if (exchange.body !== undefined) exchange.loan ??= parts.bodyMemory.loanOf(exchange.body)
  const sender = new Forward(exchange, request, parts, again)
  if (exchange.fields.webSocket) new WebSocketSender(exchange, sender, parts).send(request)
  else sender.send(request)
}

/** Takes the upstream's answer and passes it on as it comes (spec 4.4, rule 5). */
class Forward implements UpstreamHandler, Sender {
  readonly #exchange: Sendable
  readonly #request: UpstreamRequest
  readonly #parts: Parts
  readonly #again: Again
  #control: Control | undefined = undefined
  /** Body bytes still to come before a short answer is whole; 0 once that does not matter. */
  #missing = 0
  /** Undefined while the answer may still come as a whole. */
  #body: AnswerBody | undefined = undefined
  /** Reads the answer before the agent gets it, where it may list tools. */
  #tools: ToolAnswer | undefined = undefined
  /** Searches a body that was not read before, and may ask for the tools of an MCP server. */
  readonly #search: ReturnType<typeof searchUnread>
  #done = false

  constructor(exchange: Sendable, request: UpstreamRequest, parts: Parts, again: Again) {
    this.#exchange = exchange
    this.#request = request
    this.#parts = parts
    this.#again = again
    this.#search = searchUnread(exchange, parts)
    exchange.sender = this
  }

  send(request: UpstreamRequest): void {
    const { target, resolution } = this.#exchange
    this.#parts.connections.send(target.origin, resolution, request, this)
  }

  onRequestStart(control: Control): void {
    this.#control = control
    if (this.#done) control.abort(new Error('the client left'))
    // The last check before its bytes are written: it may have waited long for a connection.
    else if (!holds(this.#exchange, this.#parts)) this.#beginAgain(control)
    else this.#exchange.takenKey = undefined
  }

  onBodySent(bytes: number, piece?: Buffer): void {
    if (piece !== undefined && this.#search?.finds(piece) === true) this.#exchange.asks = 'list'
    this.#exchange.bytesUp += bytes
    this.#exchange.loan?.begin()
    // TLS leaves buffers behind that nothing else frees.
    if ('encrypted' in this.#exchange.socket) noteStreamed(bytes)
    // The held part of a body that streams now was sent.
    if (this.#exchange.body === undefined && this.#exchange.bytesUp >= this.#exchange.held) {
      letGo(this.#exchange, this.#parts)
    }
    const most = this.#parts.config.Proxy.MaxRequestBytes
    if (most > 0 && this.#exchange.bytesUp > most) this.#giveUp(refuse('body_too_large'))
  }

  onBodyWritten(): void {
    this.#exchange.loan?.finish()
  }

  onResponseStart(head: ResponseHead): void {
    const { status, reason, fields: received, contentLength = 0 } = head
    const { res, req, asks } = this.#exchange
    this.#exchange.upstreamStatus = status
    closeCircuit(this.#exchange, outcomeOfStatus(status), this.#parts)
    const fields = answerFields(received, this.#exchange, this.#parts.links)
    fields.push(requestIdField, this.#exchange.requestId)
    // Nobody reads the rest of the upload: no request behind it on this connection could be trusted.
    if (!req.complete) fields.push('Connection', 'close')
    res.sendDate = false
    const reading = asks === undefined ? undefined : readingOf(asks, head)
    if (reading !== undefined) {
      if (isRefusal(reading)) this.#refuseAnswer(reading)
      else this.#tools = openToolAnswer(reading, this.#exchange, this.#toolOutput({ ...head, fields }), this.#parts)
      return
    }
    res.writeHead(status, reason, fields)
    this.#missing = contentLength <= oneWriteBytes ? contentLength : 0
    if (this.#missing === 0) this.#stream()
  }

  onResponseData(chunk: Buffer): void {
    this.#exchange.bytesDown += chunk.length
    if (this.#tools !== undefined) this.#tools.take(chunk)
    else this.#pass(chunk)
  }

  #pass(chunk: Buffer): void {
    const { res } = this.#exchange
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
    if (this.#tools === undefined) this.#finish(trailers)
    else this.#tools.end()
  }

  #finish(trailers: readonly string[]): void {
    const { res } = this.#exchange
    this.#exchange.ending = 'forwarded'
    if (trailers.length > 0) res.addTrailers(pairs(downstreamFields(trailers)))
    if (this.#body === undefined) res.end()
    else this.#body.end()
  }

  onResponseError(error: Error): void {
    if (this.#done || this.#sendAgain(error)) return
    this.#done = true
    const { req, hasBody, agent, requestId } = this.#exchange
    const kind = failureKind(error)
    noteFailure(kind, { agentId: agent.id, requestId }, this.#parts)
    const clientFault = hasBody && req.destroyed && !req.complete
    closeCircuit(
      this.#exchange,
      clientFault ? 'neutral' : outcomeOfError(error, this.#control !== undefined),
      this.#parts,
    )
    const refusal = refuseFailure(kind, isPublicDestination(this.#exchange.resolution))
    // The client is answered when the key is free, since it may retry at once.
    if (this.#exchange.takenKey === undefined) this.#fail(refusal)
    else void freeKey(this.#exchange, this.#parts).then(() => this.#fail(refusal))
  }

  onInterim(head: ResponseHead): void {
    passInterim(this.#exchange, head, this.#parts.links)
  }

  /** Nothing was sent. The pipeline decides what happens next. */
  #beginAgain(control: Control): void {
    this.#done = true
    this.#exchange.sender = undefined
    control.abort(new Error('the right to go on has changed'))
    this.#again(this.#exchange, this.#parts)
  }

  /** Once, to the same addresses. Its right to go on is checked again when it starts. */
  #sendAgain(error: Error): boolean {
    const exchange = this.#exchange
    const started = this.#control !== undefined
    if (started && !this.#parts.config.Proxy.RetryIdempotent) return false
    // A handshake goes over a connection of its own.
    if (exchange.sentAgain || exchange.isUpgraded || !maySendAgain(error, this.#request, started)) return false
    exchange.sentAgain = true
    this.#parts.metrics?.add(retries, 1)
    exchange.bytesUp = 0
    this.#control = undefined
    this.send({ ...this.#request, fresh: error instanceof StaleConnectionError })
    return true
  }

  #stream(): AnswerBody {
    if (this.#body !== undefined) return this.#body
    this.#body = new AnswerBody(this.#exchange.res, { onFull: () => this.#stalled(), onDrained: () => this.#drained() })
    return this.#body
  }

  #toolOutput({ status, reason, fields }: ResponseHead): Output {
    const { res } = this.#exchange
    return {
      writeHead: length => {
        res.writeHead(status, reason, length === 'unchanged' ? [...fields] : withLength(fields, length))
        this.#stream()
      },
      send: bytes => this.#stream().add(bytes),
      end: () => this.#finish([]),
      fail: refusal => this.#refuseAnswer(refusal),
      pause: () => this.#control?.pause(),
      resume: () => this.#exchange.stalledSince === undefined && this.#control?.resume(),
    }
  }

  /** The answer of the upstream cannot be passed on. */
  #refuseAnswer(refusal: Refusal): void {
    const { body, res } = this.#exchange
    if (body !== undefined && !res.headersSent) readRpc(this.#exchange, body, this.#parts)
    if (this.#done) this.#fail(refusal)
    else this.#giveUp(refusal)
  }

  #stalled(): void {
    this.#control?.pause()
    this.#exchange.stalledSince = this.#parts.clock.steady()
  }

  #drained(): void {
    this.#exchange.stalledSince = undefined
    this.#control?.resume()
  }

  /** Ends the exchange: the upstream request is aborted, so that it cannot look complete. */
  #giveUp(refusal: Refusal): void {
    if (this.#done) return
    this.#done = true
    closeCircuit(this.#exchange, 'neutral', this.#parts)
    this.#fail(refusal)
    this.#control?.abort(new Error(refusal.refusal))
  }

  #fail(refusal: Refusal): void {
    const { res } = this.#exchange
    // Behind a head that was sent only a broken connection shows the client that the answer is incomplete.
    if (res.headersSent && !this.#takeBack()) breakOff(this.#exchange)
    answer(this.#exchange, refusal)
  }

  /** Takes the head back if nothing was written yet: what was malformed came in the same read. */
  #takeBack(): boolean {
    const { res } = this.#exchange
    if (res.writableEnded || bodiless.has(res.statusCode) || this.#body?.drop() === false) return false
    takeBackHead(res)
    return true
  }

  clientClosed(): void {
    if (this.#done) return
    this.#done = true
    this.#exchange.ending = 'aborted'
    if (this.#cancel()) return
    this.#control?.abort(new Error('the client left'))
  }

  /** Takes it out of the queue for a connection. False: it does not wait. */
  #cancel(): boolean {
    return this.#parts.connections.cancel(this.#exchange.target.origin, this, this.#request)
  }

  end(refusal: Refusal): void {
    // The answer came whole, but the client may not have taken all of it.
    if (this.#done) this.#fail(refusal)
    else {
      this.#cancel()
      this.#giveUp(refusal)
    }
  }
}
