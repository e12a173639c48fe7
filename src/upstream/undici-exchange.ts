import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { fieldValues } from '../http/headers.ts'
import { type ExchangeParts, UpstreamExchange } from './exchange.ts'
import { isStatus, StaleConnectionError, UpstreamError, type UpstreamHandler, type UpstreamRequest } from './handler.ts'
import { type Http1Head, headOf } from './http1-head.ts'
import { noteStreamed } from './read-buffers.ts'

export interface UndiciParts extends ExchangeParts {
  /** The connection has carried another exchange before. */
  readonly isReused: boolean
  /** Called once, before the handler gets the end of the exchange: whether the connection may be used again. */
  readonly onEnd: (reusable: boolean) => void
}

type Controller = Dispatcher.DispatchController

/** One exchange of undici, passed to a handler of the gateway. */
export class UndiciExchange extends UpstreamExchange implements Dispatcher.DispatchHandler {
  readonly body: Buffer | Readable | null
  readonly #parts: UndiciParts
  #controller: Controller | undefined
  #reusable = true

  constructor(request: UpstreamRequest, handler: UpstreamHandler, parts: UndiciParts) {
    super(request, handler, parts)
    this.#parts = parts
    // Undici destroys the stream that it sends: the source has an answer to come, and is read through another.
    this.body = request.body instanceof Readable ? this.#passing() : request.body
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    this.watch()
    this.guarded(() => {
      this.handler.onRequestStart?.(this)
      const { body } = this.request
      if (this.over || body === null) return
      if (Buffer.isBuffer(body)) {
        noteStreamed(body.length)
        this.handler.onBodySent?.(body.length)
      } else if (this.body instanceof Readable) this.#stream(body, this.body)
    })
  }

  onResponseStart(controller: Controller, status: number, _fields: unknown, reason = ''): void {
    this.hasAnswer = true
    this.guarded(() => {
      const head = this.#headOf(status, reason, textsOf(controller.rawHeaders))
      if (status < 200) {
        this.passInterim(head)
        return
      }
      this.head = head
      this.watchBody()
      this.handler.onResponseStart(head)
    })
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    this.progressed()
    noteStreamed(chunk.length)
    this.guarded(() => this.handler.onResponseData(chunk))
  }

  onResponseEnd(controller: Controller): void {
    const trailers = textsOf(controller.rawTrailers)
    // As the built-in client has it: it would be passed on, and frames nothing (RFC 9110 section 6.5.1).
    if (fieldValues(trailers, 'content-length').length > 0) {
      this.fail(new UpstreamError('malformed', 'a length behind the body'))
    } else this.complete(trailers)
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.broken(error)
  }

  broken(error: Error): void {
    const cause = faultOf(error)
    const isReset = cause instanceof UpstreamError ? cause.fault === 'reset' : true
    super.fail(isReset && this.#parts.isReused && !this.hasAnswer ? new StaleConnectionError() : cause)
  }

  override fail(error: Error): void {
    if (this.over) return
    super.fail(error)
    this.#controller?.abort(error)
  }

  protected hold(isHeld: boolean): void {
    if (isHeld) this.#controller?.pause()
    else this.#controller?.resume()
  }

  /** @throws UpstreamError when two readers could differ about the end of the answer, although undici did not mind */
  #headOf(status: number, reason: string, fields: string[]): Http1Head {
    if (!isStatus(status)) throw new UpstreamError('malformed', 'the status')
    // Undici has read the reason as UTF-8, and keeps to itself whether this was HTTP/1.0.
    const head = headOf(
      { status, reason: Buffer.from(reason).toString('latin1'), fields, isOld: false },
      this.request.method,
    )
    if (!head.persistent) this.#reusable = false
    return head
  }

  #passing(): Readable {
    return new Readable({
      read: () => this.drained(),
      destroy: (_error, done) => {
        this.upload?.stop()
        done(null)
      },
    })
  }

  #stream(body: Readable, passing: Readable): void {
    this.send(body, {
      write: chunk => {
        noteStreamed(chunk.length)
        passing.push(chunk)
      },
      end: () => passing.push(null),
      isFull: () => passing.readableLength >= passing.readableHighWaterMark,
    })
  }

  protected leave(error: Error | undefined): void {
    this.#parts.onEnd(error === undefined && this.#reusable && this.upload?.done !== false)
  }
}

/** Bytes as the code points of the same number, as in heads that the built-in client reads. */
function textsOf(raw: Controller['rawHeaders']): string[] {
  return Array.isArray(raw) ? raw.map(part => (typeof part === 'string' ? part : part.toString('latin1'))) : []
}

function faultOf(error: Error): Error {
  const code = 'code' in error ? String(error.code) : ''
  if (code === 'UND_ERR_SOCKET' && error.message.startsWith('bad '))
    return new UpstreamError('malformed', error.message)
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return new UpstreamError('malformed', 'a head that is too large')
  if (code === 'HPE_INVALID_EOF_STATE' || code.startsWith('UND_ERR_')) return new UpstreamError('reset', error.message)
  // Not all of them have a code.
  return error.name === 'HTTPParserError' ? new UpstreamError('malformed', error.message) : error
}
