import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2'
import { STATUS_CODES } from '../http/node-http.ts'
import { type ExchangeParts, UpstreamExchange } from './exchange.ts'
import {
  isStatus,
  RefusedStreamError,
  type ResponseHead,
  StaleConnectionError,
  UpstreamError,
  type UpstreamHandler,
  type UpstreamRequest,
} from './handler.ts'
import { offersConnectionAuth } from './http1-head.ts'
import { noteStreamed } from './read-buffers.ts'

export interface StreamParts extends ExchangeParts {
  /** Opens the stream, which sends the head of the request. */
  readonly open: () => ClientHttp2Stream
  /** The connection takes no more requests: it may be dead, or authenticated for one agent. */
  readonly retire: () => void
  /** The connection is gone, and had carried an exchange to its end before. */
  readonly isStale: () => boolean
  /** Called once, when the stream is over. */
  readonly onEnd: () => void
}

const broken = (): Error => new UpstreamError('reset', 'the stream ended before the answer was whole')

/** Pseudo-header fields (RFC 9113 section 8.3). */
const isPseudo = (name: string) => name.startsWith(':')

/**
 * One exchange on an HTTP/2 stream. An answer counts as whole only if its last frame said so (END_STREAM): Node ends the
 * body of a stream that was reset as if it were complete.
 */
export class Http2Exchange extends UpstreamExchange {
  /** Undefined until the request may be sent. */
  #stream: ClientHttp2Stream | undefined
  readonly #parts: StreamParts
  #ended = false
  #trailers: readonly string[] = []

  constructor(request: UpstreamRequest, handler: UpstreamHandler, parts: StreamParts) {
    super(request, handler, parts)
    this.#parts = parts
    this.watch()
  }

  /** Sends the request, unless the handler ends the exchange first: Node sends the head of a stream that is cancelled too. */
  start(): void {
    this.guarded(() => {
      this.handler.onRequestStart?.(this)
      if (!this.over) this.#begin(this.#parts.open())
    })
  }

  #begin(stream: ClientHttp2Stream): void {
    this.#stream = stream
    this.#noteEnd(stream)
    this.#read(stream)
    const { body } = this.request
    if (body === null) return
    if (Buffer.isBuffer(body)) {
      stream.end(body)
      noteStreamed(body.length)
      this.handler.onBodySent?.(body.length)
      return
    }
    this.send(body, {
      write: chunk => {
        noteStreamed(chunk.length)
        stream.write(chunk)
      },
      end: () => stream.end(),
      isFull: () => stream.writableNeedDrain,
    })
  }

  #read(stream: ClientHttp2Stream): void {
    stream.on('headers', (fields, _flags, raw) => {
      this.#onBytes()
      this.guarded(() => this.passInterim(headOf(fields, raw)))
    })
    stream.on('response', (fields, _flags, raw) => this.guarded(() => this.#respond(fields, raw)))
    stream.on('trailers', (_fields, _flags, raw) => {
      this.#trailers = withoutPseudo(raw)
    })
    stream.on('data', (chunk: Buffer) => {
      noteStreamed(chunk.length)
      this.progressed()
      this.guarded(() => this.handler.onResponseData(chunk))
    })
    stream.on('drain', () => this.drained())
    stream.on('error', error => this.fail(this.#lost(error)))
    stream.on('end', () => this.#endAnswer())
    stream.on('close', () => this.fail(this.#lost(broken())))
  }

  /** The connection takes no more streams: ends the exchange if no byte of it was sent. */
  refuseUnsent(): void {
    if (this.#stream?.state.state === constants.NGHTTP2_STREAM_STATE_IDLE) this.fail(new RefusedStreamError())
  }

  protected hold(isHeld: boolean): void {
    if (isHeld) this.#stream?.pause()
    else this.#stream?.resume()
  }

  /**
   * Node does not distinguish a reset from an end, least of all a reset with NO_ERROR. But it ends the body of a stream that
   * is still open for END_STREAM alone; one that was reset is closed by then.
   */
  #noteEnd(stream: ClientHttp2Stream): void {
    const { push } = stream
    const noting: typeof push = (chunk, encoding) => {
      if (chunk === null && !stream.closed) this.#ended = true
      return push.call(stream, chunk, encoding)
    }
    stream.push = noting
  }

  #onBytes(): void {
    this.hasAnswer = true
    this.progressed()
  }

  #respond(fields: IncomingHttpHeaders, raw: readonly string[]): void {
    this.#onBytes()
    const head = headOf(fields, raw)
    if (!isStatus(head.status)) throw new UpstreamError('malformed', 'the status')
    this.head = head
    this.watchBody()
    if (authenticates(head.fields)) this.#parts.retire()
    this.handler.onResponseStart(head)
  }

  #endAnswer(): void {
    if (this.head !== undefined && this.#ended) this.complete(this.#trailers)
    else this.fail(this.#lost(broken()))
  }

  #lost(error: Error): Error {
    if (this.hasAnswer) return error
    if (this.#stream?.rstCode === constants.NGHTTP2_REFUSED_STREAM) return new RefusedStreamError()
    return this.#parts.isStale() ? new StaleConnectionError() : error
  }

  /** Leaves the stream, and cancels it if it is not finished. */
  protected leave(error: Error | undefined): void {
    if (isTimeout(error)) this.#parts.retire()
    const stream = this.#stream
    if (stream?.closed === false) stream.close(constants.NGHTTP2_CANCEL)
    stream?.destroy()
    this.#parts.onEnd()
  }
}

const isTimeout = (error: Error | undefined): boolean =>
  error instanceof UpstreamError && (error.fault === 'headers_timeout' || error.fault === 'body_timeout')

/** The reason is the usual one: HTTP/2 has none. */
function headOf(fields: IncomingHttpHeaders, raw: readonly string[]): ResponseHead {
  const status = Number(fields[':status'])
  const length = fields['content-length']
  const contentLength = length === undefined ? undefined : Number(length)
  return { status, reason: STATUS_CODES[status] ?? '', fields: withoutPseudo(raw), contentLength }
}

/** Names are in lower case in HTTP/2 (RFC 9113 section 8.2.1). */
function authenticates(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) if (offersConnectionAuth(fields[i]!, fields[i + 1]!)) return true
  return false
}

/** Fields without those that are HTTP/2's own, flat. */
function withoutPseudo(raw: readonly string[]): string[] {
  const fields: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!
    if (!isPseudo(name)) fields.push(name, raw[i + 1]!)
  }
  return fields
}
