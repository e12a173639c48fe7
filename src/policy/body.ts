import { detectPii, detectSecret } from './detectors.ts'
import type { RequestBody } from './input.ts'
import { readJson } from './json.ts'
import { missing, unreadable } from './truth.ts'

export type BodyKind = 'none' | 'json' | 'form' | 'multipart' | 'text' | 'binary' | 'invalid' | 'truncated' | 'encoded'

/** What the header fields say about the body. */
export interface BodyHeaders {
  /** Media type alone, lower case; empty when there is none. */
  readonly mediaType: string
  /** `charset` parameter, lower case; empty when there is none. */
  readonly charset: string
  /** Content-Encoding, lower case; empty when there is none. */
  readonly encoding: string
}

const jsonType = /^(?:application|text)\/(?:[a-z0-9!#$&^_.-]+\+)?json$/
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const byteOrderMark = 0xfeff

/** A body as rules see it. Nothing is decoded before a rule asks. */
export class BodyView {
  readonly #bytes: Uint8Array
  readonly #complete: boolean
  readonly #headers: BodyHeaders
  #text: string | undefined | null = null
  #kind: BodyKind | undefined
  #value: unknown = missing
  #problem = ''
  #secret: string | undefined | null = null
  #pii: string | undefined | null = null

  constructor(body: RequestBody, headers: BodyHeaders) {
    this.#bytes = body.bytes
    this.#complete = body.complete
    this.#headers = headers
  }

  get kind(): BodyKind {
    if (this.#kind === undefined) this.#kind = this.#classify()
    return this.#kind
  }

  /** Bytes; undefined when the body is longer than what was held. */
  get size(): number | undefined {
    return this.#complete ? this.#bytes.length : undefined
  }

  /** The JSON or form value, `missing` without a body, else `unreadable`. */
  get value(): unknown {
    const kind = this.kind
    if (kind === 'none') return missing
    return kind === 'json' || kind === 'form' ? this.#value : unreadable
  }

  /** The decoded text, `missing` without a body, else `unreadable`. */
  get text(): string | typeof missing | typeof unreadable {
    const kind = this.kind
    if (kind === 'none') return missing
    if (kind === 'truncated' || kind === 'encoded') return unreadable
    return this.#decode() ?? unreadable
  }

  /** Id of a detector of group `secret` that fires on what was held. */
  get secret(): string | undefined {
    if (this.#secret === null) this.#secret = detectSecret(this.#scanText)
    return this.#secret
  }

  /** Id of a detector of group `pii` that fires on what was held. */
  get pii(): string | undefined {
    if (this.#pii === null) this.#pii = detectPii(this.#scanText)
    return this.#pii
  }

  /** Text to look for secrets in: as much as was held, whatever its kind. */
  get #scanText(): string {
    return this.#decode() ?? latin1(this.#bytes)
  }

  /** Why the body is unreadable, for the reason text, which is logged: it quotes nothing of the request. */
  get problem(): string {
    const kind = this.kind
    if (kind === 'truncated') return 'the body is longer than what is held'
    if (kind === 'encoded') return 'the body has a Content-Encoding'
    return this.#problem === '' ? `the body is ${kind}` : `the body is ${this.#problem}`
  }

  #classify(): BodyKind {
    if (this.#complete && this.#bytes.length === 0) return 'none'
    if (!this.#complete) return 'truncated'
    if (this.#headers.encoding !== '' && this.#headers.encoding !== 'identity') return 'encoded'
    if (jsonType.test(this.#headers.mediaType)) return this.#classifyJson()
    if (this.#headers.mediaType === 'application/x-www-form-urlencoded') return this.#classifyForm()
    if (this.#headers.mediaType.startsWith('multipart/')) return 'multipart'
    const text = this.#decode()
    return text === undefined || text.includes('\0') ? 'binary' : 'text'
  }

  #classifyJson(): BodyKind {
    const text = this.#strictText()
    if (text === undefined) return 'invalid'
    const read = readJson(text)
    if (typeof read === 'string') {
      this.#problem = read
      return 'invalid'
    }
    this.#value = read.value
    return 'json'
  }

  #classifyForm(): BodyKind {
    const text = this.#strictText()
    const form = text === undefined ? undefined : parseForm(text)
    if (form === undefined) {
      this.#problem ||= 'not a valid form'
      return 'invalid'
    }
    this.#value = form
    return 'form'
  }

  /** UTF-8 without a byte order mark: what every parser reads alike. */
  #strictText(): string | undefined {
    const text = isUtf8(this.#headers.charset) ? this.#decode() : undefined
    if (text !== undefined && text.charCodeAt(0) !== byteOrderMark) return text
    this.#problem = 'not plain UTF-8'
    return undefined
  }

  #decode(): string | undefined {
    if (this.#text === null) this.#text = decodeText(this.#bytes, this.#headers.charset)
    return this.#text
  }
}

export const noBody = new BodyView(
  { bytes: new Uint8Array(0), complete: true },
  { mediaType: '', charset: '', encoding: '' },
)

function isUtf8(charset: string): boolean {
  return charset === '' || charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii'
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

function decodeText(bytes: Uint8Array, charset: string): string | undefined {
  if (charset === 'iso-8859-1' || charset === 'latin1') return latin1(bytes)
  if (!isUtf8(charset)) return undefined
  try {
    return strictUtf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Names and values of a form; a repeated name gives a list. Undefined when it can be read in two ways. */
function parseForm(text: string): Record<string, unknown> | undefined {
  if (/%(?![0-9a-fA-F]{2})/.test(text)) return undefined
  const fields = readPairs(text)
  const whole = Object.values(fields).flat().concat(Object.keys(fields)).join('')
  return whole.includes('\ufffd') ? undefined : fields
}

/** Decoded `name=value` pairs; a repeated name gives a list. Own properties of an object without prototype. */
export function readPairs(text: string): Record<string, string | string[]> {
  const pairs: Record<string, string | string[]> = Object.create(null)
  // The question mark in front is what URLSearchParams drops; one in the text stays.
  for (const [name, value] of new URLSearchParams(`?${text}`)) {
    const known = pairs[name]
    if (known === undefined) pairs[name] = value
    else if (Array.isArray(known)) known.push(value)
    else pairs[name] = [known, value]
  }
  return pairs
}
