/** Parts of a multipart body (RFC 2046 section 5.1), by their bytes. */
import { textOf } from './bytes.ts'
import type { Range } from './findings.ts'

export interface Part {
  /** In their order, as they are sent. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly name: string | undefined
  /** Names of the file, of which a server takes one. */
  readonly files: readonly string[]
  /** Empty: none. */
  readonly type: string
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
  if (boundary === undefined) return 'Content-Type names no single boundary. The parts are shown as text.'
  // One character for each byte, so that offsets are those of the bytes.
  const text = new TextDecoder('latin1').decode(bytes)
  const delimiter = `--${boundary}`
  const [beginning = '', ...lines] = `\r\n${text}`.split(`\r\n${delimiter}`)
  if ([beginning, ...lines].some(one => one.includes(`\n${delimiter}`) || one.includes(`\r${delimiter}`))) {
    return 'A boundary follows a line end other than CRLF, where servers differ. The parts are shown as text.'
  }
  if (!lines.every(line => delimiterEnd.test(line))) {
    return 'A line goes on behind the boundary, where servers differ. The parts are shown as text.'
  }
  return new Reader(bytes, text, delimiter).read()
}

/** What follows a boundary in its line. */
const delimiterEnd = /^(?:--)?[ \t]*(?:\r\n|$)/

const parameter = /[ \t]*;[ \t]*([^\s;,="]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]+))/y

/** Parameters of a value, such as `name` of Content-Disposition; undefined when servers may read others. */
function parametersOf(value: string): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>()
  for (let at = value.search(/[;"]|$/); at < value.length; at = parameter.lastIndex) {
    parameter.lastIndex = at
    const [, name, quoted, plain = ''] = parameter.exec(value) ?? []
    if (name === undefined || found.has(name.toLowerCase())) return undefined
    found.set(name.toLowerCase(), quoted?.replaceAll(/\\(.)/g, '$1') ?? plain)
  }
  return found
}

function boundaryOf(type: string): string | undefined {
  const boundary = parametersOf(type)?.get('boundary')
  return boundary !== undefined && /^[\x20-\x7e]{0,69}[\x21-\x7e]$/.test(boundary) ? boundary : undefined
}

/** Fields that say what a part is. */
const telling = ['content-disposition', 'content-type', 'content-encoding', 'content-transfer-encoding']

/** What the header of a part says; undefined when servers may read it in another way. */
function partOf(headers: Part['headers'], content: Range): Part | undefined {
  const of = (wanted: string) => headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value)
  const [disposition = '', type = ''] = telling.flatMap(name => of(name)[0] ?? '')
  const parameters = parametersOf(disposition)
  if (parameters === undefined || parameters.has('name*') || telling.some(name => of(name).length > 1)) return undefined
  const files = [...new Set(['filename', 'filename*'].flatMap(name => parameters.get(name) ?? []))]
  return { headers, name: parameters.get('name'), files, type, content }
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
      if (part === undefined)
        return 'Servers differ in how they read the header of a part. The parts are shown as text.'
      if (parts.push(part) > mostParts) return `More than ${mostParts} parts are shown as text.`
      line = next
    }
    if (line === undefined) return 'There is no part with this boundary. The body is shown as text.'
    const after = { from: line.to, to: this.#text.length }
    return { parts, around: [before, after].filter(({ from, to }) => to > from) }
  }

  #next(from: number): { readonly from: number; readonly to: number; readonly isLast: boolean } | undefined {
    const isFirst = from === 0 && this.#text.startsWith(this.#delimiter)
    // A line may begin right behind another one.
    const at = isFirst ? 0 : this.#text.indexOf(`\r\n${this.#delimiter}`, Math.max(0, from - 2)) + 2
    if (!isFirst && at < 2) return undefined
    const behind = at + this.#delimiter.length
    const lineEnd = this.#text.indexOf('\r\n', behind)
    const isLast = this.#text.startsWith('--', behind)
    return { from: at, to: lineEnd < 0 ? this.#text.length : lineEnd + 2, isLast }
  }

  #part({ from, to }: Range): Part | undefined {
    if (this.#text.startsWith('\r\n', from) && from + 2 <= to) return partOf([], { from: from + 2, to })
    const end = this.#text.indexOf('\r\n\r\n', from)
    if (end < 0 || end + 4 > to || end - from > longestHead) return undefined
    const lines = textOf(this.#bytes.subarray(from, end))
      .text.replaceAll(/\r\n[ \t]+/g, ' ')
      .split('\r\n')
    // A line end of one character ends a field, or the header, for some servers.
    if (lines.some(line => /[\r\n\0]/.test(line))) return undefined
    const headers = lines.map(text => {
      const colon = text.indexOf(':')
      return [text.slice(0, Math.max(0, colon)), text.slice(colon + 1).trim()] as const
    })
    if (headers.some(([name]) => !/^[!#$%&'*+.^_`|~\w-]+$/.test(name))) return undefined
    return partOf(headers, { from: end + 4, to })
  }
}
