import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import {
  bodyTimeout,
  brokenUpload,
  type Control,
  headersTimeout,
  isStatus,
  type ResponseHead,
  StaleConnectionError,
  UpstreamError,
  type UpstreamHandler,
  type UpstreamRequest,
} from './handler.ts'
import { headOf } from './http1-head.ts'
import { noteStreamed } from './read-buffers.ts'
import { type IdleLimits, idleLimitOf } from './settings.ts'
import { Upload } from './upload.ts'

export interface UndiciExchangeParts extends IdleLimits {
  readonly headersTimeoutMs: number
  /** The connection takes no more of the request for the moment. */
  readonly isFull: () => boolean
  /** The connection has carried another exchange before. */
  readonly isReused: boolean
  /** Called once, before the handler gets the end of the exchange: whether the connection may be used again. */
  readonly onEnd: (reusable: boolean) => void
}

type Controller = Dispatcher.DispatchController

/** One exchange of undici, told to a handler of ours. */
export class UndiciExchange implements Control, Dispatcher.DispatchHandler {
  readonly body: Buffer | Readable | null
  readonly #request: UpstreamRequest
  readonly #handler: UpstreamHandler
  readonly #parts: UndiciExchangeParts
  #controller: Controller | undefined
  #upload: Upload | undefined
  #timer: NodeJS.Timeout | undefined
  /** How long it may be silent now: before the head as long as the body may be. */
  #idleMs: number
  #heard = false
  #responded = false
  #reusable = true
  #paused = false
  #over = false

  constructor(request: UpstreamRequest, handler: UpstreamHandler, parts: UndiciExchangeParts) {
    this.#request = request
    this.#handler = handler
    this.#parts = parts
    this.#idleMs = parts.idleTimeoutMs
    // Undici destroys the stream that it sends: the source has an answer to come, and is read through another.
    this.body = request.body instanceof Readable ? this.#passing() : request.body
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    this.#watch(this.#parts.headersTimeoutMs)
    this.#handler.onRequestStart?.(this)
    const { body } = this.#request
    if (this.#over || body === null) return
    if (Buffer.isBuffer(body)) this.#handler.onBodySent?.(body.length)
    else this.#send(body, this.body as Readable)
  }

  onResponseStart(controller: Controller, status: number, _fields: unknown, reason = ''): void {
    if (this.#over) return
    this.#heard = true
    const head = this.#headOf(status, reason, textsOf(controller.rawHeaders))
    if (status < 200) {
      this.#handler.onInterim?.(head)
      return
    }
    this.#responded = true
    this.#idleMs = idleLimitOf(head.fields, this.#parts)
    this.#watch(this.#idleMs)
    this.#handler.onResponseStart(head)
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    if (this.#over) return
    if (!this.#paused) this.#timer?.refresh()
    noteStreamed(chunk.length)
    this.#handler.onResponseData(chunk)
  }

  onResponseEnd(controller: Controller): void {
    if (this.#over) return
    const trailers = textsOf(controller.rawTrailers)
    // As the built-in client has it: it would be passed on, and frames nothing (RFC 9110 section 6.5.1).
    if (trailers.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length')) {
      this.fail(new UpstreamError('malformed', 'a length behind the body'))
      return
    }
    this.#leave(this.#reusable && this.#upload?.done !== false)
    this.#handler.onResponseEnd(trailers)
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.broken(error)
  }

  /** The connection is gone. */
  broken(error: Error): void {
    const cause = faultOf(error)
    const isReset = cause instanceof UpstreamError ? cause.fault === 'reset' : true
    this.#end(isReset && this.#parts.isReused && !this.#heard ? new StaleConnectionError() : cause)
  }

  fail(error: Error): void {
    if (this.#over) return
    this.#end(error)
    this.#controller?.abort(error)
  }

  abort(reason: Error): void {
    this.fail(reason)
  }

  #end(error: Error): void {
    if (this.#over) return
    this.#leave(false)
    this.#handler.onResponseError(error)
  }

  pause(): void {
    if (this.#over || this.#paused) return
    this.#paused = true
    // The upstream may be silent while the client does not read.
    clearTimeout(this.#timer)
    this.#controller?.pause()
  }

  resume(): void {
    if (this.#over || !this.#paused) return
    this.#paused = false
    this.#watch(this.#idleMs)
    this.#controller?.resume()
  }

  /** @throws UpstreamError when two readers could differ about the end of the answer, although undici did not mind */
  #headOf(status: number, reason: string, fields: string[]): ResponseHead {
    if (!isStatus(status)) throw new UpstreamError('malformed', 'the status')
    // Undici has read the reason as UTF-8, and keeps to itself whether this was HTTP/1.0.
    const head = headOf(
      { status, reason: Buffer.from(reason).toString('latin1'), fields, isOld: false },
      this.#request.method,
    )
    if (!head.persistent) this.#reusable = false
    return head
  }

  #passing(): Readable {
    return new Readable({
      read: () => this.#upload?.resume(),
      destroy: (_error, done) => {
        this.#upload?.stop()
        done(null)
      },
    })
  }

  #send(body: Readable, passing: Readable): void {
    let hasRoom = true
    this.#upload = new Upload(body, {
      write: chunk => {
        hasRoom = passing.push(chunk)
      },
      end: () => {
        passing.push(null)
        this.#progressed()
      },
      isFull: () => !hasRoom,
      onChunk: bytes => {
        try {
          this.#handler.onBodySent?.(bytes)
        } catch (error) {
          this.fail(error as Error)
        }
        this.#progressed()
        return !this.#over
      },
      onBroken: () => this.fail(brokenUpload()),
    })
  }

  /** An answer that waits for the rest of the request does not stand still. */
  #progressed(): void {
    if (!this.#over && !this.#paused) this.#timer?.refresh()
  }

  #watch(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = this.#over ? undefined : setTimeout(() => this.#late(), ms).unref()
  }

  #late(): void {
    if (this.#responded) this.fail(bodyTimeout())
    // A client that is slow to send its body is not the upstream's fault.
    else if (this.#upload === undefined || this.#upload.done || this.#parts.isFull()) this.fail(headersTimeout())
  }

  #leave(reusable: boolean): void {
    this.#over = true
    clearTimeout(this.#timer)
    this.#upload?.stop()
    this.#parts.onEnd(reusable)
  }
}

/** Bytes as the code points of the same number, as in heads that the built-in client reads. */
function textsOf(raw: Controller['rawHeaders']): string[] {
  return Array.isArray(raw) ? raw.map(part => (typeof part === 'string' ? part : part.toString('latin1'))) : []
}

/** The fault for an error of undici. */
function faultOf(error: Error): Error {
  const code = 'code' in error ? String(error.code) : ''
  if (code === 'UND_ERR_SOCKET' && error.message.startsWith('bad '))
    return new UpstreamError('malformed', error.message)
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return new UpstreamError('malformed', 'a head that is too large')
  if (code === 'HPE_INVALID_EOF_STATE' || code.startsWith('UND_ERR_')) return new UpstreamError('reset', error.message)
  // Not all of them have a code.
  return error.name === 'HTTPParserError' ? new UpstreamError('malformed', error.message) : error
}
