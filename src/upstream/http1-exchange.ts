import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { ChunkedBody } from './chunked.ts'
import { usesConnectionAuth } from './connection-auth.ts'
import {
  bodyTimeout,
  brokenUpload,
  type Control,
  headersTimeout,
  UpstreamError,
  type UpstreamHandler,
  type UpstreamRequest,
} from './handler.ts'
import { type Http1Head, readHead, writeHead } from './http1-head.ts'
import { PartialHead } from './partial-head.ts'
import { type IdleLimits, idleLimitOf } from './settings.ts'
import { Upload } from './upload.ts'

export interface ExchangeEnd {
  /** The connection stands where the next request may begin. */
  readonly reusable: boolean
  /** Announced time for which the upstream keeps an idle connection, seconds. */
  readonly keepAlive: number | undefined
}

export interface ExchangeSettings extends IdleLimits {
  readonly socket: Socket
  readonly maxHeaderSize: number
  /** Called for every piece of the request that was written. */
  readonly onSent: () => void
  /** Called once, before the handler gets the end of the exchange. */
  readonly onEnd: (end: ExchangeEnd) => void
}

/** Bodies up to this length are joined with their head as one string: one write of one piece, bytes. */
const oneStringBytes = 2_048
/** The idle limit is counted in so many parts. */
const idleParts = 8

/** One request and its answer on a connection that speaks HTTP/1.1. */
export class Http1Exchange implements Control {
  /** Bytes have arrived since the request was sent. */
  heard = false
  readonly #request: UpstreamRequest
  readonly #handler: UpstreamHandler
  readonly #settings: ExchangeSettings
  #head: Http1Head | undefined
  /** The received part of an incomplete head. */
  #partial: PartialHead | undefined
  /** Bytes of the body that are still to come, when its length is known. */
  #left = 0
  #chunked: ChunkedBody | undefined
  #idleTimer: NodeJS.Timeout | undefined
  /** Parts of the idle limit that went by in silence. */
  #silence = 0
  #upload: Upload | undefined
  #paused = false
  #over = false

  constructor(request: UpstreamRequest, handler: UpstreamHandler, settings: ExchangeSettings) {
    this.#request = request
    this.#handler = handler
    this.#settings = settings
  }

  /** Sends the request, or its head and the body as it arrives. */
  start(authority: string): void {
    this.#guarded(() => {
      const head = writeHead(this.#request, authority)
      this.#handler.onRequestStart?.(this)
      if (this.#over) return
      const { body } = this.#request
      if (body === null) this.#settings.socket.write(head, 'latin1')
      else if (Buffer.isBuffer(body)) this.#sendWhole(head, body)
      else this.#stream(head, body)
    })
  }

  #sendWhole(head: string, body: Buffer): void {
    const { socket } = this.#settings
    this.#handler.onBodySent?.(body.length)
    if (this.#over) return
    if (body.length <= oneStringBytes) socket.write(head + body.toString('latin1'), 'latin1')
    else {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
    }
  }

  #stream(head: string, body: Readable): void {
    const { socket, onSent } = this.#settings
    // The body received so far leaves in one write with the head: streams emit it in the next tick.
    socket.cork()
    socket.write(head, 'latin1')
    const chunked = this.#request.bodyLength === undefined
    this.#upload = new Upload(body, {
      write: chunk => (chunked ? writeChunk(socket, chunk) : socket.write(chunk)),
      end: () => {
        if (chunked) socket.write('0\r\n\r\n', 'latin1')
        onSent()
      },
      // A write that the system took at once also needs a drain event, but nothing to wait for.
      isFull: () => socket.writableNeedDrain && socket.writableLength > 0,
      onChunk: bytes => {
        this.#guarded(() => this.#handler.onBodySent?.(bytes))
        if (this.#over) return false
        onSent()
        // An answer that waits for the rest of the request does not stand still.
        this.#silence = 0
        return true
      },
      onBroken: () => this.fail(brokenUpload()),
    })
    process.nextTick(() => socket.uncork())
  }

  drained(): void {
    this.#upload?.resume()
  }

  /** Parses received bytes. They are valid during the call alone. */
  read(bytes: Buffer): void {
    this.heard = true
    this.#guarded(() => {
      const at = this.#head === undefined ? this.#readHeads(bytes) : 0
      if (this.#head !== undefined && !this.#over) this.#readBody(at === 0 ? bytes : bytes.subarray(at))
    })
  }

  /** The upstream has closed its side: that ends a body without a length. */
  ended(): void {
    if (this.#head?.framing === 'close') this.#complete(false)
    else this.fail(new UpstreamError('reset', 'the upstream closed the connection before its answer was whole'))
  }

  /** The time limit for the head is over. It does not count while a slow client still sends its body. */
  headLate(): void {
    const waitsForClient = this.#upload !== undefined && !this.#upload.done && !this.#settings.socket.writableNeedDrain
    if (this.#head !== undefined || waitsForClient) return
    this.fail(headersTimeout())
  }

  fail(error: Error): void {
    if (this.#over) return
    this.#leave(false)
    this.#handler.onResponseError(error)
  }

  abort(reason: Error): void {
    this.fail(reason)
  }

  pause(): void {
    if (this.#over || this.#paused) return
    this.#paused = true
    this.#settings.socket.pause()
    // The upstream may be silent while the client does not read.
    clearInterval(this.#idleTimer)
    this.#idleTimer = undefined
  }

  resume(): void {
    if (this.#over || !this.#paused) return
    this.#paused = false
    this.#watchIdle()
    this.#settings.socket.resume()
  }

  /** Parses interim heads and the head of the answer. Returns how many of `bytes` they took. */
  #readHeads(bytes: Buffer): number {
    const before = this.#partial?.text.length ?? 0
    const text = before === 0 ? bytes.toString('latin1') : this.#partial?.text + bytes.toString('latin1')
    let at = 0
    while (!this.#over) {
      const end = text.indexOf('\r\n\r\n', Math.max(at, before - 3))
      const size = (end < 0 ? text.length : end) - at
      if (size > this.#settings.maxHeaderSize) throw new UpstreamError('malformed', 'a head that is too large')
      if (end < 0) {
        if (at > 0) this.#partial = undefined
        this.#partial ??= new PartialHead()
        this.#partial.grow(text.slice(at))
        return bytes.length
      }
      const head = readHead(text.slice(at, end + 2), this.#request.method)
      at = end + 4
      this.#take(head)
      if (this.#head !== undefined) break
    }
    this.#partial = undefined
    return at - before
  }

  #take(head: Http1Head): void {
    if (head.status === 101) throw new UpstreamError('malformed', 'a change of protocol that nobody asked for')
    if (head.status < 200) {
      if (!head.persistent) throw new UpstreamError('malformed', 'an interim answer with a body, or that is the last')
      this.#handler.onInterim?.(head)
      return
    }
    this.#head = head
    this.#left = head.contentLength ?? 0
    if (head.framing === 'chunked') {
      this.#chunked = new ChunkedBody(chunk => this.#pass(chunk), this.#settings.maxHeaderSize)
    }
    this.#handler.onResponseStart(head)
  }

  #readBody(bytes: Buffer): void {
    const head = this.#head as Http1Head
    let used = 0
    if (head.framing === 'length') {
      used = Math.min(this.#left, bytes.length)
      this.#left -= used
      this.#pass(used === bytes.length ? bytes : bytes.subarray(0, used))
    } else if (head.framing === 'close') {
      used = bytes.length
      this.#pass(bytes)
    } else if (this.#chunked !== undefined) used = this.#chunked.take(bytes)
    if (this.#over) return
    if (head.framing === 'none' || (head.framing === 'length' && this.#left === 0) || this.#chunked?.complete) {
      this.#complete(used === bytes.length)
    } else if (!this.#paused) this.#watchIdle()
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0 && !this.#over) this.#handler.onResponseData(bytes)
  }

  /** Each read sets a number, since to set a timer again costs more: so the limit is met within one part of it. */
  #watchIdle(): void {
    this.#silence = 0
    if (this.#idleTimer !== undefined) return
    const part = () => {
      this.#silence += 1
      if (this.#silence > idleParts) this.fail(bodyTimeout())
    }
    const limit = idleLimitOf(this.#head?.fields ?? [], this.#settings)
    this.#idleTimer = setInterval(part, limit / idleParts).unref()
  }

  /** @param exact no bytes follow the answer */
  #complete(exact: boolean): void {
    if (this.#over) return
    const trailers = this.#chunked?.trailers ?? []
    this.#leave(exact)
    this.#handler.onResponseEnd(trailers)
  }

  #leave(sound: boolean): void {
    this.#over = true
    clearInterval(this.#idleTimer)
    const sent = this.#upload?.done ?? true
    this.#upload?.stop()
    this.#chunked?.stop()
    if (this.#paused) this.#settings.socket.resume()
    const { persistent = false, keepAlive } = this.#head ?? {}
    const reusable = sound && sent && persistent && !usesConnectionAuth(this.#request.fields)
    this.#settings.onEnd({ reusable, keepAlive })
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (this.#over) throw error
      this.fail(error as Error)
    }
  }
}

/** Pieces up to this length are joined with their framing: one write of one piece, bytes. */
const joinedBytes = 16_384
const lineEnd = '\r\n'

/** One chunk of a body without an announced length (RFC 9112 section 7.1). */
function writeChunk(socket: Socket, chunk: Buffer): void {
  const size = `${chunk.length.toString(16)}${lineEnd}`
  if (chunk.length <= joinedBytes) {
    socket.write(size + chunk.toString('latin1') + lineEnd, 'latin1')
    return
  }
  socket.cork()
  socket.write(size, 'latin1')
  socket.write(chunk)
  socket.write(lineEnd, 'latin1')
  socket.uncork()
}
