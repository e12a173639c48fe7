import { tokenPattern } from '../base/field-names.ts'
import { UpstreamError } from './handler.ts'
import { checkBytes, readFields } from './http1-head.ts'

/** Longest line before a chunk: its size and extensions, which are ignored, bytes. */
const maxSizeLine = 1_024
const quoted = String.raw`"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"`
/** Maximum of hexadecimal digits of a size that is an exact number. Extensions have no space around them. */
const sizeLine = new RegExp(`^([0-9a-f]{1,12})(?:;${tokenPattern}(?:=(?:${tokenPattern}|${quoted}))?)*$`, 'i')
const carriageReturn = 0x0d
const lineFeed = 0x0a
/** Digits of a size that is read without making a string of its line. */
const maxDigits = 8

/** What the parser expects next. */
type Expected = 'size' | 'data' | 'dataEnd' | 'trailers' | 'nothing'

/** Parses a chunked body (RFC 9112 section 7.1). Rejects anything that two parsers could read differently. */
export class ChunkedBody {
  readonly trailers: string[] = []
  readonly #onData: (chunk: Buffer) => void
  readonly #maxTrailers: number
  #expected: Expected = 'size'
  /** Bytes of the chunk that are still to come. */
  #left = 0
  /** The received part of an incomplete line. */
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

  /** Ignores the rest. */
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
      if (this.#expected === 'data') at += this.#takeData(bytes, at)
      else at += this.#takePlainLine(bytes, at) || this.#takeLine(bytes, at)
    }
    return at
  }

  /**
   * The lines of nearly all chunks: a size alone, and the end of the data. They are read from the bytes.
   *
   * @returns bytes taken; 0: the line is not whole, or another one
   */
  #takePlainLine(bytes: Buffer, at: number): number {
    if (this.#text !== '' || this.#expected === 'trailers') return 0
    let size = 0
    let end = at
    if (this.#expected === 'size') {
      for (let digit = hexDigit(bytes[at]); digit >= 0 && end - at < maxDigits; digit = hexDigit(bytes[end])) {
        size = size * 16 + digit
        end += 1
      }
      if (end === at) return 0
    }
    if (bytes[end] !== carriageReturn || bytes[end + 1] !== lineFeed) return 0
    if (this.#expected === 'size') this.#beginChunk(size)
    else this.#expected = 'size'
    return end + 2 - at
  }

  #beginChunk(size: number): void {
    this.#left = size
    this.#expected = size === 0 ? 'trailers' : 'data'
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
    const max = this.#expected === 'trailers' ? this.#maxTrailers - this.#trailerBytes : maxSizeLine
    if (this.#text.length > max) throw new UpstreamError('malformed', 'a chunk with a long line')
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
    this.#beginChunk(Number.parseInt(size, 16))
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

/** Value of a hexadecimal digit; -1 for any other byte. */
function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
