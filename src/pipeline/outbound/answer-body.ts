import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'

/**
 * One full read of an upstream connection, 64 KiB, with its framing as a chunk. Pieces of answers are copied into buffers
 * of this size, which are used again: fresh memory for each piece costs more than the copy, since the system must clear
 * its pages first and V8 must collect it later.
 */
const bufferBytes = 65_536 + 16
/** Buffers that this thread keeps: 2 MiB. More are in use only while many clients are slow. */
const maxKept = 32
const free: Buffer[] = []

/** The content is old: only bytes written since may be sent. */
const takeBuffer = (): Buffer => free.pop() ?? Buffer.allocUnsafeSlow(bufferBytes)

/** Call it once for each buffer taken, when nothing reads it. Buffers that are never given back are collected. */
function giveBuffer(buffer: Buffer): void {
  if (free.length < maxKept) free.push(buffer)
}

/** Up to this length a piece is written as a string: node joins it with the head, and no buffer stays in use, bytes. */
export const oneStringBytes = 2_048
/** Framing of a chunk: its longest size line and two line ends, bytes. */
const frameBytes = 5 + 2 + 2
const carriageReturn = 0x0d
const lineFeed = 0x0a
const hexDigits = Buffer.from('0123456789abcdef')

export interface BackPressure {
  /** The client does not read, and the buffers are full. */
  readonly onFull: () => void
  /** The client has read everything. */
  readonly onDrained: () => void
}

/**
 * The body of an answer that streams. All that one turn of the event loop brings is sent in one write after that turn,
 * with framing and head: node would write each chunk in four pieces. Nothing waits longer than that.
 *
 * Make it right after `writeHead`. From then on only this class writes and ends `res`.
 */
export class AnswerBody {
  readonly #res: ServerResponse
  readonly #chunked: boolean
  readonly #pace: BackPressure
  /** Where pieces are written past `res`, which would cork each: known once the head has gone there. */
  #socket: Socket | undefined
  /** Bytes that are not written yet. */
  #buffer: Buffer | undefined
  #used = 0
  #isDue = false
  #isHeadSent = false

  constructor(res: ServerResponse, pace: BackPressure) {
    this.#res = res
    this.#chunked = res.chunkedEncoding
    this.#pace = pace
    res.chunkedEncoding = false
    res.on('drain', pace.onDrained)
    // The head must not wait for the body.
    this.#writeSoon()
  }

  /** Copies `bytes`. */
  add(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (bufferBytes - this.#used <= frameBytes) this.#write()
      at += this.#append(bytes, at)
    }
    this.#writeSoon()
  }

  /** Drops what is not written yet. False: the head, or more, was written already. */
  drop(): boolean {
    if (this.#isHeadSent) return false
    if (this.#buffer !== undefined) giveBuffer(this.#buffer)
    this.#buffer = undefined
    this.#used = 0
    this.#isHeadSent = true
    return true
  }

  end(): void {
    const { socket } = this.#res
    socket?.cork()
    if (this.#used > 0) this.#send(this.#res)
    // Node writes the last chunk, with the trailers.
    this.#res.chunkedEncoding = this.#chunked
    this.#res.end()
    socket?.uncork()
    if (this.#res.writableLength > 0) this.#pace.onFull()
  }

  /** Returns how many bytes fitted in. */
  #append(bytes: Buffer, at: number): number {
    this.#buffer ??= takeBuffer()
    const buffer = this.#buffer
    const free = bufferBytes - this.#used - (this.#chunked ? frameBytes : 0)
    const length = Math.min(free, bytes.length - at)
    if (this.#chunked) this.#writeSize(buffer, length)
    // Less than `copy` costs: most pieces fit in.
    if (length === bytes.length) buffer.set(bytes, this.#used)
    else bytes.copy(buffer, this.#used, at, at + length)
    this.#used += length
    if (this.#chunked) this.#endLine(buffer)
    return length
  }

  /** The line before a chunk, in hexadecimal. To make a text of it costs more than to copy the piece. */
  #writeSize(buffer: Buffer, length: number): void {
    let shift = 0
    while (length >> shift > 15) shift += 4
    for (; shift >= 0; shift -= 4) buffer[this.#used++] = hexDigits[(length >> shift) & 15]!
    this.#endLine(buffer)
  }

  #endLine(buffer: Buffer): void {
    buffer[this.#used++] = carriageReturn
    buffer[this.#used++] = lineFeed
  }

  #writeSoon(): void {
    if (this.#isDue) return
    this.#isDue = true
    process.nextTick(writeDue, this)
  }

  /** Call it after the turn of the event loop. */
  writeDue(): void {
    this.#isDue = false
    const { writableEnded, destroyed } = this.#res
    if (!writableEnded && !destroyed && (this.#used > 0 || !this.#isHeadSent)) this.#write()
  }

  #write(): void {
    const { socket } = this.#res
    if (this.#socket !== undefined) {
      if (this.#send(this.#socket) || this.#socket.writableLength === 0) return
      this.#socket.once('drain', this.#pace.onDrained)
      this.#pace.onFull()
      return
    }
    // Uncorked here, and not by node in the next tick, to learn at once whether the system takes the bytes.
    socket?.cork()
    const goesOn = this.#send(this.#res)
    socket?.uncork()
    // Without a socket other answers of this connection come first.
    this.#socket = socket ?? undefined
    if (!goesOn && this.#res.writableLength > 0) this.#pace.onFull()
  }

  /** Returns whether more may be written. */
  #send(to: Writable): boolean {
    const buffer = this.#buffer
    const used = this.#used
    this.#isHeadSent = true
    if (buffer === undefined) return to.write('', 'latin1')
    this.#buffer = undefined
    this.#used = 0
    if (used > oneStringBytes) return to.write(buffer.subarray(0, used), () => giveBuffer(buffer))
    const text = buffer.toString('latin1', 0, used)
    giveBuffer(buffer)
    return to.write(text, 'latin1')
  }
}

const writeDue = (body: AnswerBody): void => body.writeDue()
