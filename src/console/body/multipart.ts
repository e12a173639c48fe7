/** Parts of a multipart body (RFC 2046 section 5.1), by their bytes. */
import { textOf } from './bytes.ts'
import type { Range } from './findings.ts'

export interface Part {
  /** In their order, as they are sent. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Bytes of the content. */
  readonly content: Range
}

export interface Multipart {
  readonly parts: readonly Part[]
  /** Bytes before the first part and behind the last one, which servers ignore. */
  readonly around: readonly Range[]
}

/** Parts that are set out; a body with more is shown as text. */
const mostParts = 1_000
/** Longest header of a part, bytes. */
const longestHead = 16_384

/** The parts; or why a server may read others, in which case nothing is set out. */
export function partsIn(bytes: Uint8Array, type: string): Multipart | string {
  const boundary = boundaryOf(type)
  if (boundary === undefined) return 'Content-Type names no boundary. The parts are shown as text.'
  // One character for each byte, so that offsets are those of the bytes.
  const text = new TextDecoder('latin1').decode(bytes)
  const delimiter = `--${boundary}`
  if (text.includes(`\n${delimiter}`) && text.replaceAll(`\r\n${delimiter}`, '').includes(`\n${delimiter}`)) {
    return 'A boundary follows a line end without CR, where servers differ. The parts are shown as text.'
  }
  return new Reader(bytes, text, delimiter).read()
}

/** The value of a parameter such as `name` of Content-Disposition. */
export function parameterOf(value: string, wanted: string): string | undefined {
  const [, quoted, plain] = new RegExp(`;\\s*${wanted}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;,"]+))`, 'i').exec(value) ?? []
  return quoted?.replaceAll(/\\(.)/g, '$1') ?? plain
}

function boundaryOf(type: string): string | undefined {
  const boundary = parameterOf(type, 'boundary')
  return boundary !== undefined && /^[\x20-\x7e]{1,70}$/.test(boundary) ? boundary : undefined
}

class Reader {
  readonly #bytes: Uint8Array
  readonly #text: string
  readonly #delimiter: string

  constructor(bytes: Uint8Array, text: string, delimiter: string) {
    this.#bytes = bytes
    this.#text = text
    this.#delimiter = delimiter
  }

  read(): Multipart | string {
    let line = this.#next(0)
    const before = { from: 0, to: Math.max(0, (line?.from ?? 0) - 2) }
    const parts: Part[] = []
    while (line !== undefined && !line.isLast) {
      const next = this.#next(line.to)
      if (next === undefined) return 'The last part has no end. The parts are shown as text.'
      const part = this.#part({ from: line.to, to: next.from - 2 })
      if (part === undefined) return 'The header of a part is not valid. The parts are shown as text.'
      if (parts.push(part) > mostParts) return `More than ${mostParts} parts are shown as text.`
      line = next
    }
    if (line === undefined) return 'There is no part with this boundary. The body is shown as text.'
    const after = { from: line.to, to: this.#text.length }
    return { parts, around: [before, after].filter(({ from, to }) => this.#text.slice(from, to).trim() !== '') }
  }

  /** The next line that is a delimiter. */
  #next(from: number): { readonly from: number; readonly to: number; readonly isLast: boolean } | undefined {
    for (let at = from; ; at++) {
      at = this.#text.indexOf(this.#delimiter, at)
      if (at < 0) return undefined
      if (at > 0 && this.#text.slice(at - 2, at) !== '\r\n') continue
      const end = /^(--)?[ \t]*(?:\r\n|$)/.exec(
        this.#text.slice(at + this.#delimiter.length, at + this.#delimiter.length + 80),
      )
      if (end === null) continue
      return { from: at, to: at + this.#delimiter.length + end[0].length, isLast: end[1] !== undefined }
    }
  }

  #part({ from, to }: Range): Part | undefined {
    if (this.#text.startsWith('\r\n', from)) return { headers: [], content: { from: from + 2, to } }
    const end = this.#text.indexOf('\r\n\r\n', from)
    if (end < 0 || end > to || end - from > longestHead) return undefined
    const lines = textOf(this.#bytes.subarray(from, end))
      .text.replaceAll(/\r\n[ \t]+/g, ' ')
      .split('\r\n')
    const headers = lines.map(text => {
      const colon = text.indexOf(':')
      return [text.slice(0, Math.max(0, colon)), text.slice(colon + 1).trim()] as const
    })
    return headers.some(([name]) => !/^[!#$%&'*+.^_`|~\w-]+$/.test(name))
      ? undefined
      : { headers, content: { from: end + 4, to } }
  }
}
