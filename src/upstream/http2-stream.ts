import { STATUS_CODES } from 'node:http'
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from 'node:http2'
import type { Readable } from 'node:stream'
import { offersConnectionAuth } from './connection-auth.ts'
import {
  bodyTimeout,
  type Control,
  headersTimeout,
  isStatus,
  RefusedStreamError,
  type ResponseHead,
  StaleConnectionError,
  UpstreamError,
  type UpstreamHandler,
  type UpstreamRequest,
} from './handler.ts'
import { noteStreamed } from './read-buffers.ts'
import { type IdleLimits, idleLimitOf } from './settings.ts'
import { Upload } from './upload.ts'

export interface StreamSettings extends IdleLimits {
  readonly headersTimeoutMs: number
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
 * One exchange on an HTTP/2 stream, told to the same handler that one over HTTP/1.1 is told to. An answer counts as
 * whole only if its last frame said so (END_STREAM): Node ends the body of a stream that was reset as if it were complete.
 */
export class Http2Exchange implements Control {
  readonly #stream: ClientHttp2Stream
  readonly #handler: UpstreamHandler
  readonly #settings: StreamSettings
  /** Something of an answer has come. */
  #heard = false
  #responded = false
  /** The upstream has ended the answer. */
  #ended = false
  #paused = false
  #over = false
  /** How long it may be silent once its answer has begun. */
  #idleMs: number
  #trailers: readonly string[] = []
  #upload: Upload | undefined

  constructor(stream: ClientHttp2Stream, handler: UpstreamHandler, settings: StreamSettings) {
    this.#stream = stream
    this.#handler = handler
    this.#settings = settings
    this.#idleMs = settings.idleTimeoutMs
    this.#noteEnd()
    stream.setTimeout(settings.headersTimeoutMs)
    stream.on('headers', (fields, _flags, raw) => {
      this.#heard = true
      this.#guarded(() => handler.onInterim?.(headOf(fields, raw)))
    })
    stream.on('response', (fields, _flags, raw) => this.#respond(fields, raw))
    stream.on('trailers', (_fields, _flags, raw) => {
      this.#trailers = withoutPseudo(raw)
    })
    stream.on('data', (chunk: Buffer) => {
      noteStreamed(chunk.length)
      this.#guarded(() => handler.onResponseData(chunk))
    })
    stream.on('timeout', () => this.#timeOut())
    stream.on('error', error => this.#fail(this.#lost(error)))
    stream.on('end', () => this.#complete())
    stream.on('close', () => this.#fail(this.#lost(broken())))
  }

  /** Sends the body, if any, and begins to listen. */
  start(body: UpstreamRequest['body']): void {
    this.#guarded(() => this.#handler.onRequestStart?.(this))
    if (this.#over || body === null) return
    if (!Buffer.isBuffer(body)) this.#send(body)
    else {
      this.#stream.end(body)
      this.#guarded(() => this.#handler.onBodySent?.(body.length))
    }
  }

  abort(reason: Error): void {
    this.#fail(reason)
  }

  pause(): void {
    this.#paused = true
    this.#stream.pause()
    // The upstream may be silent while the client does not read.
    this.#stream.setTimeout(0)
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#stream.setTimeout(this.#idleMs)
    this.#stream.resume()
  }

  /**
   * Node tells a reset from an end nowhere, least of all one that says NO_ERROR. But it ends the body of a stream that is
   * still open for END_STREAM alone; one that was reset is closed by then.
   */
  #noteEnd(): void {
    const stream = this.#stream
    const push = stream.push
    stream.push = (chunk, encoding) => {
      if (chunk === null && !stream.closed) this.#ended = true
      return push.call(stream, chunk, encoding)
    }
  }

  #send(body: Readable): void {
    const stream = this.#stream
    const upload = new Upload(body, {
      write: chunk => stream.write(chunk),
      end: () => stream.end(),
      isFull: () => stream.writableNeedDrain,
      onChunk: bytes => {
        this.#guarded(() => this.#handler.onBodySent?.(bytes))
        return !this.#over
      },
      onBroken: () => this.#fail(broken()),
    })
    stream.on('drain', () => upload.resume())
    this.#upload = upload
  }

  #respond(fields: IncomingHttpHeaders, raw: readonly string[]): void {
    this.#heard = true
    this.#responded = true
    const head = headOf(fields, raw)
    this.#idleMs = idleLimitOf(head.fields, this.#settings)
    this.#stream.setTimeout(this.#idleMs)
    if (!isStatus(head.status)) {
      this.#fail(new UpstreamError('malformed', 'the status'))
      return
    }
    if (authenticates(head.fields)) this.#settings.retire()
    this.#guarded(() => this.#handler.onResponseStart(head))
  }

  #timeOut(): void {
    if (this.#over) return
    this.#settings.retire()
    this.#fail(this.#responded ? bodyTimeout() : headersTimeout())
  }

  #complete(): void {
    if (this.#over) return
    if (!this.#responded || !this.#ended) {
      this.#fail(this.#lost(broken()))
      return
    }
    this.#leave()
    this.#handler.onResponseEnd(this.#trailers)
  }

  #lost(error: Error): Error {
    if (this.#heard) return error
    if (this.#stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) return new RefusedStreamError()
    return this.#settings.isStale() ? new StaleConnectionError() : error
  }

  #fail(error: Error): void {
    if (this.#over) return
    this.#leave()
    this.#handler.onResponseError(error)
  }

  /** Leaves the stream, and cancels it if it is not finished. */
  #leave(): void {
    this.#over = true
    this.#upload?.stop()
    const stream = this.#stream
    stream.setTimeout(0)
    if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL)
    stream.destroy()
    this.#settings.onEnd()
  }

  #guarded(tell: () => void): void {
    if (this.#over) return
    try {
      tell()
    } catch (error) {
      this.#fail(error as Error)
    }
  }
}

/** The reason is the usual one: HTTP/2 has none. */
function headOf(fields: IncomingHttpHeaders, raw: readonly string[]): ResponseHead {
  const status = Number(fields[':status'])
  const length = fields['content-length']
  const contentLength = length === undefined ? undefined : Number(length)
  return { status, reason: STATUS_CODES[status] ?? '', fields: withoutPseudo(raw), contentLength }
}

/** Names are in lower case in HTTP/2 (RFC 9113 section 8.2.1). */
function authenticates(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2)
    if (offersConnectionAuth(fields[i] as string, fields[i + 1] as string)) return true
  return false
}

/** Fields without those that are HTTP/2's own, flat. */
function withoutPseudo(raw: readonly string[]): string[] {
  const fields: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    if (!isPseudo(name)) fields.push(name, raw[i + 1] as string)
  }
  return fields
}
