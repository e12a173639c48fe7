import { tokenPattern } from '../base/field-names.ts'
import { UpstreamError } from './handler.ts'
import { checkBytes, readFields } from './http1-head.ts'

/** Longest line before a chunk: its size and extensions, which nobody here reads, bytes. */
const maxSizeLine = 1_024
const quoted = String.raw`"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"`
/** A size of at most so many hexadecimal digits is an exact number. Extensions have no space around them. */
const sizeLine = new RegExp(`^([0-9a-f]{1,12})(?:;${tokenPattern}(?:=(?:${tokenPattern}|${quoted}))?)*$`, 'i')
const lineFeed = 0x0a

/** What comes next. */
type Expected = 'size' | 'data' | 'dataEnd' | 'trailers' | 'nothing'

/** Takes a body in chunks apart (RFC 9112 section 7.1). Refuses whatever two readers could understand differently. */
export class ChunkedBody {
  readonly trailers: string[] = []
  readonly #onData: (chunk: Buffer) => void
  readonly #maxTrailers: number
  #expected: Expected = 'size'
  /** Bytes of the chunk that are still to come. */
  #left = 0
  /** What has come of a line. */
  #text = ''
  /** Length of the trailers whose lines are whole. */
  #trailerBytes = 0

  /** @param maxTrailers largest trailer section, bytes */
  constructor(onData: (chunk: Buffer) => void, maxTrailers: number) {
    this.#onData = onData
    this.#maxTrailers = maxTrailers
  }

  get complete(): boolean {
    return this.#expected === 'nothing'
  }

  /** Takes no more, whatever came. */
  stop(): void {
    this.#expected = 'nothing'
  }

  /**
   * Takes what came, and passes on the data that is in it.
   * @returns how much of it belongs to the body: less than all only behind the end
   * @throws UpstreamError `malformed`
   */
  take(bytes: Buffer): number {
    let at = 0
    while (at < bytes.length && !this.complete) {
      at += this.#expected === 'data' ? this.#takeData(bytes, at) : this.#takeLine(bytes, at)
    }
    return at
  }

  #takeData(bytes: Buffer, at: number): number {
    const length = Math.min(this.#left, bytes.length - at)
    this.#left -= length
    if (this.#left === 0) this.#expected = 'dataEnd'
    this.#onData(bytes.subarray(at, at + length))
    return length
  }

  #takeLine(bytes: Buffer, at: number): number {
    const found = bytes.indexOf(lineFeed, at)
    const end = found < 0 ? bytes.length : found + 1
    this.#text += bytes.toString('latin1', at, end)
    const most = this.#expected === 'trailers' ? this.#maxTrailers - this.#trailerBytes : maxSizeLine
    if (this.#text.length > most) throw new UpstreamError('malformed', 'a chunk with a long line')
    if (found >= 0) this.#endLine()
    return end - at
  }

  #endLine(): void {
    const text = this.#text
    this.#text = ''
    if (this.#expected === 'trailers') {
      this.#endTrailer(text)
      return
    }
    if (this.#expected === 'dataEnd') {
      if (text !== '\r\n') throw new UpstreamError('malformed', 'a chunk that is longer than its size')
      this.#expected = 'size'
      return
    }
    const size = text.endsWith('\r\n') ? sizeLine.exec(text.slice(0, -2))?.[1] : undefined
    if (size === undefined) throw new UpstreamError('malformed', 'the size of a chunk')
    this.#left = Number.parseInt(size, 16)
    this.#expected = this.#left === 0 ? 'trailers' : 'data'
  }

  /** An empty line ends them. */
  #endTrailer(line: string): void {
    checkBytes(line)
    this.#trailerBytes += line.length
    if (line === '\r\n') {
      this.#expected = 'nothing'
      return
    }
    const fields = readFields(line, 0)
    // It would be passed on, and frames nothing here (RFC 9110 section 6.5.1).
    if (fields[0]?.toLowerCase() === 'content-length') throw new UpstreamError('malformed', 'a length behind the body')
    this.trailers.push(...fields)
  }
}
