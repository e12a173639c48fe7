import { isAscii, isUtf8 as validUtf8 } from 'node:buffer'
import { type DetectorSearch, personalDataSearch, secretSearch } from '../detectors/detectors.ts'
import { Excerpt } from '../detectors/excerpt.ts'
import { type Escapes, Readings } from '../detectors/readings.ts'
import type { Scan } from '../detectors/scan.ts'
import { finish } from '../turns/evaluation.ts'
import { isRecord } from '../values/path.ts'
import { False, missing, True, type Truth, Unreadable, unreadable } from '../values/truth.ts'
import type { Form } from './form.ts'
import { FormReading } from './form-reading.ts'
import type { RequestBody } from './input.ts'
import { JsonDocument, JsonReading, maxJsonValues } from './json.ts'
import { memberOf } from './names.ts'

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

/** A body as rules see it. Nothing is decoded, parsed or searched before a rule or a signal asks. */
export class BodyView {
  readonly #bytes: Buffer
  readonly #complete: boolean
  readonly #headers: BodyHeaders
  #text: string | undefined
  #kind: BodyKind | undefined
  #json: JsonDocument | undefined
  #form: Form | undefined
  /** The reading of a JSON or form body that takes several turns. */
  #reading: JsonReading | FormReading | undefined
  #problem = ''
  readonly #searches = new Map<DetectorSearch, Scan>()
  #validUtf8: boolean | undefined
  #readings: Readings | undefined
  #excerpt: Excerpt | undefined
  #excerptReadings: Readings | undefined

  constructor(body: RequestBody, headers: BodyHeaders) {
    const { buffer, byteOffset, byteLength } = body.bytes
    this.#bytes = Buffer.from(buffer, byteOffset, byteLength)
    this.#complete = body.complete
    this.#headers = headers
  }

  get kind(): BodyKind {
    if (this.#kind === undefined) this.#kind = this.#withheld ?? this.#classify()
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
    if (kind === 'json') return this.#json?.value
    return kind === 'form' ? this.#form?.pairs : unreadable
  }

  /** The JSON value, if a rule has read it. */
  get read(): unknown {
    return this.#json?.value
  }

  /** A member of a JSON object or form: `missing`, or `unreadable` where some server finds another one. */
  member(name: string): unknown {
    return this.kind === 'form' ? this.#form?.valueOf(name) : memberOf(this.value, name)
  }

  /** The names of a JSON object or form: `missing`, or `unreadable` where some server finds others. */
  get names(): unknown {
    const { value } = this
    if (this.kind === 'form') return this.#form?.names
    if (typeof value === 'symbol') return value
    return isRecord(value) ? Object.keys(value) : missing
  }

  /** Makes numbers of the value exact that a double cannot hold. False when all were before. */
  makeExact(): boolean {
    return this.#json?.makeExact() ?? false
  }

  /** The decoded text, `missing` without a body, else `unreadable`. */
  get text(): string | typeof missing | typeof unreadable {
    const state = this.#textState
    return state === undefined ? this.#decode() : state
  }

  /** Whether a detector fires on the text. It is searched as bytes: to decode a long one keeps others waiting. */
  detects(search: DetectorSearch): Truth {
    const state = this.#textState
    if (state !== undefined) return state === missing ? False : Unreadable
    return this.#search(search) === undefined ? False : True
  }

  /**
   * `missing` or `unreadable` when there is no text, or when servers may read it differently: some trust a byte order mark,
   * and some read bytes with zeros as UTF-16 or UTF-32, against the header fields.
   */
  get #textState(): typeof missing | typeof unreadable | undefined {
    const withheld = this.#withheld
    if (withheld !== undefined) return withheld === 'none' ? missing : unreadable
    const { charset } = this.#headers
    const isAlike = this.#isText && (isLatin1(charset) || !hasMark(this.#bytes))
    return isAlike ? undefined : unreadable
  }

  /** Whether the bytes are text in their encoding, and no zeros are among them. */
  get #isText(): boolean {
    return this.#isDecodable && !this.#bytes.includes(0)
  }

  get #isDecodable(): boolean {
    const { charset } = this.#headers
    return isLatin1(charset) || this.#isUtf8
  }

  /** Id of a detector of group `secret` that fires on what was held. */
  get secret(): string | undefined {
    return this.#search(secretSearch)
  }

  /** Id of a detector of group `pii` that fires on what was held. */
  get pii(): string | undefined {
    return this.#search(personalDataSearch)
  }

  /** Searches the held bytes of any kind of body. */
  #search(search: DetectorSearch): string | undefined {
    let scan = this.#searches.get(search)
    if (scan === undefined) {
      scan = search.begin(search === secretSearch ? this.#searchedForSecrets : this.#searched)
      this.#searches.set(search, scan)
    }
    finish(scan)
    return scan.id
  }

  /** Text that cannot be decoded is searched byte by byte. */
  get #searched(): Readings {
    this.#readings ??= new Readings({ bytes: this.#bytes, utf8: this.#isUtf8 }, this.#escapes)
    return this.#readings
  }

  /** Only those parts in which there may be a secret. */
  get #searchedForSecrets(): Readings {
    this.#excerpt ??= new Excerpt(this.#bytes)
    finish(this.#excerpt)
    const { result: bytes } = this.#excerpt
    if (bytes === this.#bytes) return this.#searched
    // How nothing is encoded need not be known.
    this.#excerptReadings ??= new Readings({ bytes, utf8: bytes.length > 0 && this.#isUtf8 }, this.#escapes)
    return this.#excerptReadings
  }

  /** Looked at once: it goes over all of the bytes. */
  get #isUtf8(): boolean {
    this.#validUtf8 ??= isUtf8(this.#headers.charset) && validUtf8(this.#bytes)
    return this.#validUtf8
  }

  /** Text of any type may hold JSON: lines, events, or a body with another media type. Images and archives do not. */
  get #escapes(): Escapes {
    const { mediaType } = this.#headers
    if (this.#withheld === 'encoded') return 'kept'
    if (jsonType.test(mediaType)) return 'read'
    return this.#isText || mediaType.startsWith('multipart/') ? 'both' : 'kept'
  }

  /** Nobody is expected to search it any more. */
  release(): void {
    this.#readings?.release()
    this.#excerptReadings?.release()
  }

  /** Why the body is unreadable, for the reason text, which is logged: it quotes nothing of the request. */
  get problem(): string {
    const kind = this.kind
    if (kind === 'truncated') return 'the body is longer than what is held'
    if (kind === 'encoded') return 'the body has a Content-Encoding'
    if (kind === 'json' || kind === 'form') return 'servers may read its names in different ways'
    return this.#problem === '' ? `the body is ${kind}` : `the body is ${this.#problem}`
  }

  /** The kind of a body of which no text can be had. */
  get #withheld(): BodyKind | undefined {
    if (this.#complete && this.#bytes.length === 0) return 'none'
    if (!this.#complete) return 'truncated'
    return this.#headers.encoding === '' || this.#headers.encoding === 'identity' ? undefined : 'encoded'
  }

  #classify(): BodyKind {
    if (jsonType.test(this.#headers.mediaType)) return this.#classifyParsed('json')
    if (this.#headers.mediaType === 'application/x-www-form-urlencoded') return this.#classifyParsed('form')
    if (this.#headers.mediaType.startsWith('multipart/')) return 'multipart'
    return this.#isText ? 'text' : 'binary'
  }

  #classifyParsed(kind: 'json' | 'form'): BodyKind {
    if (this.#reading === undefined && !this.#isPlain()) return 'invalid'
    this.#reading ??=
      kind === 'json' ? new JsonReading(this.#bytes, maxJsonValues) : new FormReading(this.#decode(), maxJsonValues)
    finish(this.#reading)
    const { result } = this.#reading
    this.#reading = undefined
    if (typeof result === 'string') {
      this.#problem = result
      return 'invalid'
    }
    if (result instanceof JsonDocument) this.#json = result
    else this.#form = result
    return kind
  }

  /** Whether it is UTF-8 that every parser reads alike. */
  #isPlain(): boolean {
    const bytes = this.#bytes
    const isPlain = !hasMark(bytes) && !bytes.includes(0) && this.#isUtf8
    if (!isPlain) this.#problem = 'not plain UTF-8'
    return isPlain
  }

  /** Of bytes that are text. */
  #decode(): string {
    this.#text ??= decodeText(this.#bytes, this.#headers.charset)
    return this.#text
  }
}

export const noBody = new BodyView(
  { bytes: new Uint8Array(0), complete: true },
  { mediaType: '', charset: '', encoding: '' },
)

function hasMark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

function isLatin1(charset: string): boolean {
  return charset === 'iso-8859-1' || charset === 'latin1'
}

function isUtf8(charset: string): boolean {
  return charset === '' || charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii'
}

function decodeText(bytes: Buffer, charset: string): string {
  // The decoder takes three times as long: a long body must not keep everybody waiting.
  return isLatin1(charset) || isAscii(bytes) ? bytes.toString('latin1') : strictUtf8.decode(bytes)
}
