import { STATUS_CODES } from 'node:http'
import type { ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import { constants } from 'node:http2'
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { errors } from 'undici'
import type { UpstreamHandler, UpstreamRequest } from './connection.ts'

export interface StreamSettings {
  readonly headersTimeoutMs: number
  readonly idleTimeoutMs: number
  /** Told when nothing came on the stream for too long: the connection may be dead. */
  readonly onTimeout: () => void
  /** Told once, when the stream is of no more use. */
  readonly onEnd: () => void
}

/** The stream ended before the answer was whole. */
class StreamBrokenError extends Error {
  override readonly name = 'StreamBrokenError'
}

/** Pseudo-header fields (RFC 9113 section 8.3). */
const isPseudo = (name: string) => name.startsWith(':')

/**
 * One exchange on an HTTP/2 stream, told to the same handler that one over HTTP/1.1 is told to. An answer counts as
 * whole only if its last frame said so (END_STREAM): Node ends the body of a stream that was reset as if it were complete.
 */
export class Http2Exchange implements Dispatcher.DispatchController {
  rawHeaders: Buffer[] | null = null
  rawTrailers: Buffer[] | null = null
  readonly #stream: ClientHttp2Stream
  readonly #handler: UpstreamHandler
  readonly #settings: StreamSettings
  #responded = false
  /** The upstream has ended the answer. */
  #ended = false
  #paused = false
  #reason: Error | null = null
  #over = false
  #stopUpload: () => void = () => {}

  constructor(stream: ClientHttp2Stream, handler: UpstreamHandler, settings: StreamSettings) {
    this.#stream = stream
    this.#handler = handler
    this.#settings = settings
    this.#noteEnd()
    stream.setTimeout(settings.headersTimeoutMs)
    stream.on('headers', (fields, _flags, raw) => this.#told(fields, raw))
    stream.on('response', (fields, _flags, raw) => this.#respond(fields, raw))
    stream.on('trailers', (_fields, _flags, raw) => {
      this.rawTrailers = bytesOf(raw)
    })
    stream.on('data', (chunk: Buffer) => this.#guarded(() => this.#handler.onResponseData?.(this, chunk)))
    stream.on('timeout', () => this.#timeOut())
    stream.on('error', error => this.#fail(error))
    stream.on('end', () => this.#complete())
    stream.on('close', () => this.#fail(new StreamBrokenError()))
  }

  /** Sends the body, if any, and begins to listen. */
  start(body: UpstreamRequest['body']): void {
    this.#guarded(() => this.#handler.onRequestStart?.(this, undefined))
    if (this.#over || body === null || body === undefined) return
    if (typeof body === 'object' && 'pipe' in body) this.#upload(body as Readable)
    else {
      this.#stream.end(body)
      this.#guarded(() => this.#handler.onBodySent?.(body as Buffer))
    }
  }

  get aborted(): boolean {
    return this.#reason !== null
  }

  get paused(): boolean {
    return this.#paused
  }

  get reason(): Error | null {
    return this.#reason
  }

  abort(reason: Error): void {
    this.#reason ??= reason
    this.#fail(reason)
  }

  pause(): void {
    this.#paused = true
    this.#stream.pause()
    // While nobody takes what came, the upstream may be silent.
    this.#stream.setTimeout(0)
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#stream.setTimeout(this.#settings.idleTimeoutMs)
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

  /** Passes the body on as fast as it is taken. Its source is not destroyed: the client has an answer to come. */
  #upload(body: Readable): void {
    const stream = this.#stream
    const onData = (chunk: Buffer) => {
      this.#guarded(() => this.#handler.onBodySent?.(chunk))
      if (!this.#over && !stream.write(chunk)) body.pause()
    }
    const onDrain = () => void body.resume()
    const onEnd = () => void stream.end()
    const onGone = () => this.#fail(new StreamBrokenError())
    body.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone)
    stream.on('drain', onDrain)
    this.#stopUpload = () => {
      body.off('data', onData).off('end', onEnd).off('close', onGone)
      stream.off('drain', onDrain)
      body.pause()
    }
    body.once('end', () => body.off('close', onGone))
    // One that was held up to a limit stands still.
    body.resume()
  }

  #told(fields: IncomingHttpHeaders, raw: readonly string[]): void {
    if (this.#over) return
    this.rawHeaders = bytesOf(raw)
    const status = Number(fields[':status'])
    // The others are joined when they are there twice: they are for the handler to take from the raw ones.
    const length = fields['content-length']
    const known = length === undefined ? {} : { 'content-length': length }
    // HTTP/2 has no reason phrase.
    this.#guarded(() => this.#handler.onResponseStart?.(this, status, known, STATUS_CODES[status] ?? ''))
  }

  #respond(fields: IncomingHttpHeaders, raw: readonly string[]): void {
    this.#responded = true
    this.#stream.setTimeout(this.#settings.idleTimeoutMs)
    this.#told(fields, raw)
  }

  #timeOut(): void {
    if (this.#over) return
    this.#settings.onTimeout()
    this.#fail(this.#responded ? new errors.BodyTimeoutError() : new errors.HeadersTimeoutError())
  }

  #complete(): void {
    if (this.#over) return
    if (!this.#responded || !this.#ended) {
      this.#fail(new StreamBrokenError())
      return
    }
    this.#leave()
    this.#handler.onResponseEnd?.(this, {})
  }

  #fail(error: Error): void {
    if (this.#over) return
    this.#leave()
    this.#handler.onResponseError(this, error)
  }

  /** Lets go of the stream. What is not finished on it is cancelled. */
  #leave(): void {
    this.#over = true
    this.#stopUpload()
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
      this.abort(error as Error)
    }
  }
}

/** Field names and values as bytes, flat, without those that are HTTP/2's own. */
function bytesOf(raw: readonly string[]): Buffer[] {
  const bytes: Buffer[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    if (!isPseudo(name)) bytes.push(Buffer.from(name, 'latin1'), Buffer.from(raw[i + 1] as string, 'latin1'))
  }
  return bytes
}
