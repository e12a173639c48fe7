/**
 * Bodies that clients of S3 send in signed chunks: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html. Their
 * signatures are those of the agent, so the gateway sends the content without its chunks.
 */
import { Readable, Transform, type TransformCallback } from 'node:stream'
import { fieldValues } from '../http/headers.ts'
import { MalformedBodyError } from '../upstream/handler.ts'

const digestField = 'x-amz-content-sha256'
const lengthField = 'x-amz-decoded-content-length'
const chunked = /^STREAMING-AWS4-HMAC-SHA256-PAYLOAD(?:-TRAILER)?$/

/** The length of the content, bytes; undefined when the body is not in signed chunks, or the agent does not say how long it is. */
export function chunkedLength(rawHeaders: readonly string[]): number | undefined {
  const [digest = ''] = fieldValues(rawHeaders, digestField)
  if (!chunked.test(digest)) return undefined
  const lengths = fieldValues(rawHeaders, lengthField)
  return lengths.length === 1 && /^\d{1,15}$/.test(lengths[0]!) ? Number(lengths[0]) : undefined
}

/** Fields that speak of the chunks, or of a checksum behind them. */
const chunkFields: ReadonlySet<string> = new Set([
  digestField,
  lengthField,
  'x-amz-trailer',
  'x-amz-sdk-checksum-algorithm',
])

/** The fields of the content alone. */
export function withoutChunkFields(fields: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const [name, value] = [fields[i]!, fields[i + 1]!]
    const lower = name.toLowerCase()
    if (lower === 'content-encoding') {
      const codings = value.split(',').filter(coding => coding.trim().toLowerCase() !== 'aws-chunked')
      if (codings.length > 0) kept.push(name, codings.join(',').trim())
    } else if (!chunkFields.has(lower)) kept.push(name, value)
  }
  return kept
}

/** The content of a body in chunks. @param length bytes that it must have */
export function contentOf(body: Readable | Uint8Array, length: number): Readable {
  const source = body instanceof Readable ? body : Readable.from([body])
  const content = new ChunkContent(source, length)
  // It may be known to be wrong before anybody reads it; a reader then finds it destroyed.
  content.on('error', () => {})
  // A client that leaves ends the stream without its end.
  source.once('close', () => {
    if (!source.readableEnded) content.destroy()
  })
  return content
}

/** Bytes of the line before a chunk, and of the fields behind the last one. */
const [maxLine, maxTrailers] = [128, 8_192]
const chunkHead = /^([0-9a-f]{1,8})(?:;chunk-signature=[0-9a-f]{64})?$/i

/** Passes the content of chunks on, whose signatures are not checked. */
class ChunkContent extends Transform {
  /** Bytes of content that are to come still: in all, and of this chunk; -1 before its line. */
  #left: number
  #chunkLeft = -1
  #line = ''
  /** The last chunk was read: only fields follow. */
  #trailers = -1

  readonly #source: Readable
  #isPiped = false

  constructor(source: Readable, length: number) {
    super()
    this.#source = source
    this.#left = length
  }

  /** Nothing is taken of the source before it is sent: a request may begin again before that. */
  override _read(size: number): void {
    if (!this.#isPiped) {
      this.#isPiped = true
      this.#source.pipe(this)
    }
    super._read(size)
  }

  override _transform(piece: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let at = 0
    while (at < piece.length) {
      const taken = this.#take(piece, at)
      if (taken === undefined) {
        done(malformed())
        return
      }
      at += taken
    }
    done()
  }

  override _flush(done: TransformCallback): void {
    done(this.#trailers >= 0 && this.#left === 0 ? null : malformed())
  }

  /** How many bytes it took; undefined when they are not as they must be. */
  #take(piece: Buffer, at: number): number | undefined {
    if (this.#trailers >= 0) {
      this.#trailers += piece.length - at
      return this.#trailers > maxTrailers ? undefined : piece.length - at
    }
    if (this.#chunkLeft > 0) return this.#passContent(piece, at)
    return this.#readLine(piece, at)
  }

  #passContent(piece: Buffer, at: number): number {
    const bytes = piece.subarray(at, at + this.#chunkLeft)
    this.#chunkLeft -= bytes.length
    this.push(bytes)
    return bytes.length
  }

  #readLine(piece: Buffer, at: number): number | undefined {
    const end = piece.indexOf('\n', at)
    const until = Math.min(end < 0 ? piece.length : end + 1, at + maxLine + 1)
    this.#line += piece.toString('latin1', at, until)
    if (this.#line.length > maxLine) return undefined
    if (this.#line.endsWith('\n') && !this.#endLine()) return undefined
    return until - at
  }

  #endLine(): boolean {
    const line = this.#line
    this.#line = ''
    // The end of the content of a chunk.
    if (this.#chunkLeft === 0) {
      this.#chunkLeft = -1
      return line === '\r\n'
    }
    const [, digits] = chunkHead.exec(line.slice(0, -2)) ?? []
    if (digits === undefined || !line.endsWith('\r\n')) return false
    const size = Number.parseInt(digits, 16)
    this.#left -= size
    if (size === 0) this.#trailers = 0
    else this.#chunkLeft = size
    return this.#left >= 0
  }
}

const malformed = (): Error => new MalformedBodyError('The body is not in chunks as X-Amz-Content-Sha256 says.')
