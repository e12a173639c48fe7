import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { freeBytes } from '../http/free-bytes.ts'
import { ChunkedBody } from './chunked.ts'
import { type ExchangeParts, UpstreamExchange } from './exchange.ts'
import { UpstreamError, type UpstreamHandler, type UpstreamRequest } from './handler.ts'
import { type Http1Head, readHead, usesConnectionAuth, writeHead } from './http1-head.ts'
import type { HeadMemory } from './known-head.ts'
import { PartialHead } from './partial-head.ts'
import type { CarrierSettings } from './settings.ts'

export interface ExchangeEnd {
  /** The connection is ready for the next request. */
  readonly reusable: boolean
  /** Announced time for which the upstream keeps an idle connection, seconds. */
  readonly keepAlive: number | undefined
}

export interface Http1Parts extends ExchangeParts {
  readonly socket: Socket
  readonly limits: CarrierSettings
  /** Heads that this connection remembers. */
  readonly heads: HeadMemory<Http1Head>
  /** Called for every piece of the request that was written. */
  readonly onSent: () => void
  /** Called once, before the handler gets the end of the exchange. */
  readonly onEnd: (end: ExchangeEnd) => void
}

/** Bodies up to this length are joined with their head as one string: one write of one piece, bytes. */
const oneStringBytes = 2_048

/**
 * A head is read in pieces of this length, bytes. A text of all that came would be 64 KiB, most of it body, and live as
 * long as a field of the head, which is a part of it.
 */
const headPiece = 2_048

/** One request and its answer on a connection that speaks HTTP/1.1. */
export class Http1Exchange extends UpstreamExchange<Http1Head> {
  readonly #parts: Http1Parts
  #partial: PartialHead | undefined
  /** Bytes of the body that are still to come, when its length is known. */
  #left = 0
  #chunked: ChunkedBody | undefined
  /** No bytes followed the answer. */
  #exact = false

  constructor(request: UpstreamRequest, handler: UpstreamHandler, parts: Http1Parts) {
    super(request, handler, parts)
    this.#parts = parts
  }

  /** Sends the request, or its head and the body as it arrives. */
  start(authority: string): void {
    this.guarded(() => {
      const head = writeHead(this.request, authority)
      this.handler.onRequestStart?.(this)
      if (this.over) return
      const { body } = this.request
      if (body === null) this.#parts.socket.write(head, 'latin1')
      else if (Buffer.isBuffer(body)) this.#sendWhole(head, body)
      else this.#stream(head, body)
    })
  }

  #sendWhole(head: string, body: Buffer): void {
    const { socket } = this.#parts
    this.handler.onBodySent?.(body.length)
    if (this.over) return
    if (body.length <= oneStringBytes) socket.write(head + body.toString('latin1'), 'latin1')
    else {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body, error => {
        if (error === undefined || error === null) this.handler.onBodyWritten?.()
      })
      socket.uncork()
    }
  }

  #stream(head: string, body: Readable): void {
    const { socket } = this.#parts
    // The body received so far leaves in one write with the head: streams emit it in the next tick.
    socket.cork()
    socket.write(head, 'latin1')
    const chunked = this.request.bodyLength === undefined
    this.send(body, {
      write: chunk => (chunked ? writeChunk(socket, chunk) : writePiece(socket, chunk)),
      end: () => chunked && socket.write('0\r\n\r\n', 'latin1'),
      // After a write that the system took at once, a drain event is due too, but there is nothing to wait for.
      isFull: () => socket.writableNeedDrain && socket.writableLength > 0,
    })
    process.nextTick(() => socket.uncork())
  }

  protected override progressed(): void {
    super.progressed()
    this.#parts.onSent()
  }

  /** Parses received bytes. They are valid during the call alone. */
  read(bytes: Buffer): void {
    this.hasAnswer = true
    this.guarded(() => {
      let at = 0
      while (this.head === undefined && !this.over && at < bytes.length) at += this.#readHeads(bytes, at)
      if (this.head !== undefined && !this.over) this.#readBody(this.head, at === 0 ? bytes : bytes.subarray(at))
    })
  }

  /** The upstream has closed its side: that ends a body without a length. */
  ended(): void {
    if (this.head?.framing === 'close') this.#endAnswer(false)
    else this.fail(new UpstreamError('reset', 'the upstream closed the connection before its answer was whole'))
  }

  /** The time limit for the head is over. The connection counts it, with one timer for all its exchanges. */
  headLate(): void {
    if (this.head === undefined) this.late()
  }

  protected hold(isHeld: boolean): void {
    if (isHeld) this.#parts.socket.pause()
    else this.#parts.socket.resume()
  }

  /** Parses interim heads and the head of the answer in the piece at `start`. Returns how many bytes it took. */
  #readHeads(bytes: Buffer, start: number): number {
    const { heads } = this.#parts
    const known = this.#partial === undefined ? heads.find(bytes, start, this.request.method) : undefined
    if (known === undefined) return this.#parseHeads(bytes, start)
    const { length } = heads
    this.#take(known)
    return length
  }

  #parseHeads(bytes: Buffer, start: number): number {
    const piece = bytes.toString('latin1', start, start + headPiece)
    const before = this.#partial?.text.length ?? 0
    const text = before === 0 ? piece : this.#partial?.text + piece
    let at = 0
    while (!this.over) {
      const end = text.indexOf('\r\n\r\n', Math.max(at, before - 3))
      const size = (end < 0 ? text.length : end) - at
      if (size > this.#parts.limits.maxHeaderSize) throw new UpstreamError('malformed', 'a head that is too large')
      if (end < 0) {
        if (at > 0) this.#partial = undefined
        this.#partial ??= new PartialHead()
        this.#partial.grow(text.slice(at))
        return piece.length
      }
      const head = this.#headOf(text.slice(at, end + 2), before === 0)
      at = end + 4
      this.#take(head)
      if (this.head !== undefined) break
    }
    this.#partial = undefined
    return at - before
  }

  /** @param isShort the text is part of one piece: a remembered head keeps that piece in memory */
  #headOf(text: string, isShort: boolean): Http1Head {
    const { method } = this.request
    return isShort ? this.#parts.heads.read(text, method) : readHead(text, method)
  }

  #take(head: Http1Head): void {
    if (head.status === 101) {
      this.#beginTunnel(head)
      return
    }
    if (head.status < 200) {
      if (!head.persistent) throw new UpstreamError('malformed', 'an interim answer with a body, or that is the last')
      this.passInterim(head)
      return
    }
    this.head = head
    this.#left = head.contentLength ?? 0
    if (head.framing === 'chunked') {
      this.#chunked = new ChunkedBody(chunk => this.#pass(chunk), this.#parts.limits.maxHeaderSize)
    }
    this.handler.onResponseStart(head)
  }

  /** A tunnel may be silent: its owner has a time limit for that. */
  protected override watch(): void {
    if (this.head?.status !== 101) super.watch()
  }

  /** All further bytes belong to the other protocol, until one side closes the connection. */
  #beginTunnel(head: Http1Head): void {
    const { upgrades } = this.request
    if (upgrades !== true) throw new UpstreamError('malformed', 'a change of protocol that nobody asked for')
    this.head = { ...head, framing: 'close', persistent: false }
    this.handler.onResponseStart(head)
    if (!this.over) this.handler.onTunnel?.(this.#parts.socket)
  }

  #readBody(head: Http1Head, bytes: Buffer): void {
    let used = 0
    if (head.framing === 'length') {
      used = Math.min(this.#left, bytes.length)
      this.#left -= used
      this.#pass(used === bytes.length ? bytes : bytes.subarray(0, used))
    } else if (head.framing === 'close') {
      used = bytes.length
      this.#pass(bytes)
    } else if (this.#chunked !== undefined) used = this.#chunked.take(bytes)
    if (this.over) return
    if (head.framing === 'none' || (head.framing === 'length' && this.#left === 0) || this.#chunked?.complete) {
      this.#endAnswer(used === bytes.length)
    } else this.watch()
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0 && !this.over) this.handler.onResponseData(bytes)
  }

  /** @param exact no bytes follow the answer */
  #endAnswer(exact: boolean): void {
    this.#exact = exact
    this.complete(this.#chunked?.trailers ?? [])
  }

  protected leave(error: Error | undefined): void {
    const { socket, onEnd } = this.#parts
    this.#chunked?.stop()
    if (this.paused) socket.resume()
    const { persistent = false, keepAlive } = this.head ?? {}
    const isSent = this.upload === undefined || (this.upload.done && socket.writableLength === 0)
    const isSound = error === undefined && this.#exact && isSent
    onEnd({ reusable: isSound && persistent && !usesConnectionAuth(this.request.fields), keepAlive })
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
    freeBytes(chunk)
    return
  }
  socket.cork()
  socket.write(size, 'latin1')
  writePiece(socket, chunk)
  socket.write(lineEnd, 'latin1')
  socket.uncork()
}

/** Writes a piece, and frees it when the system has all of it. */
function writePiece(socket: Socket, piece: Buffer): void {
  socket.write(piece, error => {
    if (error === undefined || error === null) freeBytes(piece)
  })
}
