import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import { type FieldName, fieldName } from './names.ts'

/** Maximum of header fields of a request; node itself would drop the rest silently. */
const maxFields = 128

const hostPattern = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]{0,5})?$/

/** End-to-end fields that `Connection` must not name: removing them would change the request after the decision. */
const notNominable = /^(?:host|authorization|cookie|content-.*|expect|via)$/

const eventStream = 'text/event-stream'

/** Facts about the header section of a request. Raw arrays are flat: name, value, name, value. */
export type RequestFields = Readonly<FieldReader>

class FieldReader {
  /** The name of each field, in order. */
  readonly names: FieldName[] = []
  /** Body bytes announced; 0 when there is no body, -1 when it is chunked. */
  contentLength = 0
  host = ''
  hosts = 0
  /** Lower-cased names from `Connection` that are not hop-by-hop anyway; undefined when there are none. */
  nominated: ReadonlySet<string> | undefined = undefined
  maxForwards: string | undefined = undefined
  idempotencyKey: string | undefined = undefined
  hasTwoKeys = false
  /** Value of `traceparent`; empty when it is repeated: then it is of no trace. */
  traceparent: string | undefined = undefined
  /** Values of `Via`, joined. */
  via = ''
  /** The client asks for another protocol on this connection. */
  upgrade = false
  /** That protocol is WebSocket. */
  webSocket = false
  /** There is `Mcp-Method` or `Mcp-Name`. */
  mcp = false
  /** There is a field that MCP clients send with a request for a stream of events. */
  mcpStream = false
  /** A browser loads the answer as a page, a script, an image or the like, rather than for a script that reads it. */
  isLoad = false
  /** `Accept` has the type of event streams. */
  acceptsEvents = false
  codings: string | undefined = undefined
  connection: string | undefined = undefined
  isDisguised = false

  read(raw: readonly string[]): void {
    for (let i = 0; i < raw.length; i += 2) {
      const name = fieldName(raw[i]!)
      this.names.push(name)
      if (name.isDisguised) this.isDisguised = true
      if (name.steersGateway) this.#note(name.lower, raw[i + 1]!)
    }
  }

  #note(name: string, value: string): void {
    switch (name) {
      case 'host':
        this.hosts += 1
        this.host = value
        break
      case 'content-length':
        this.contentLength = Number(value)
        break
      case 'transfer-encoding':
        this.codings = joined(this.codings, value)
        break
      case 'connection':
        this.connection = joined(this.connection, value)
        break
      case 'via':
        this.via = this.via === '' ? value : `${this.via}, ${value}`
        break
      case 'max-forwards':
        this.maxForwards = value
        break
      case 'idempotency-key':
        if (this.idempotencyKey !== undefined) this.hasTwoKeys = true
        this.idempotencyKey = value
        break
      case 'traceparent':
        this.traceparent = this.traceparent === undefined ? value : ''
        break
      case 'upgrade':
        this.upgrade = true
        if (/\bwebsocket\b/i.test(value)) this.webSocket = true
        break
      case 'accept':
        if (value.length >= eventStream.length && value.toLowerCase().includes(eventStream)) this.acceptsEvents = true
        break
      case 'mcp-method':
      case 'mcp-name':
        this.mcp = true
        break
      case 'sec-fetch-dest':
        if (value !== 'empty') this.isLoad = true
        break
      case 'mcp-session-id':
      case 'mcp-protocol-version':
      case 'last-event-id':
        this.mcpStream = true
    }
  }
}

/** Reads the header section once and refuses what node lets through (RFC 9112 sections 3.2, 6.1; RFC 9110 7.6.1). */
export function readFields(raw: readonly string[], httpVersion: string): RequestFields | Refusal {
  // Node's parser also takes 0.9, with or without a version in the line, and 2.0.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refuse('http_version_not_supported')
  if (raw.length > maxFields * 2)
    return refuse('headers_too_large', `A request must have at most ${maxFields} header fields.`)
  const reader = new FieldReader()
  reader.read(raw)
  if (reader.isDisguised) return refuse('invalid_request', disguisedDetail)
  if (reader.hosts > 1) return refuse('invalid_request', 'A request must have one Host header.')
  if (!hostPattern.test(reader.host))
    return refuse('invalid_request', 'The Host header must be a host with an optional port.')
  if (reader.hasTwoKeys) return refuse('invalid_request', 'A request must have at most one Idempotency-Key header.')
  if (reader.codings !== undefined) {
    const problem = codingsProblem(reader.codings, httpVersion)
    if (problem !== undefined) return refuse('invalid_request', problem)
    reader.contentLength = -1
  }
  const nominated = reader.connection === undefined ? undefined : nominatedNames(reader.connection)
  if (isRefusal(nominated)) return nominated
  reader.nominated = nominated
  return reader
}

const disguisedDetail = 'A header name reads like a framing or gateway field to servers that treat _ and . as hyphens.'

const joined = (before: string | undefined, value: string) => (before === undefined ? value : `${before}, ${value}`)

function codingsProblem(codings: string, httpVersion: string): string | undefined {
  if (codings.trim().toLowerCase() !== 'chunked') return 'Transfer-Encoding may only be chunked.'
  return httpVersion === '1.1' ? undefined : 'Transfer-Encoding needs HTTP/1.1.'
}

function nominatedNames(connection: string): ReadonlySet<string> | undefined | Refusal {
  let names: Set<string> | undefined
  for (const part of connection.split(',')) {
    const name = part.trim().toLowerCase()
    if (name === '' || name === 'close' || fieldName(name).hopByHopRequest) continue
    if (notNominable.test(name)) return refuse('invalid_request', `Connection must not name ${name}.`)
    names ??= new Set()
    names.add(name)
  }
  return names
}

/** All values of one field, in order. */
export function fieldValues(raw: readonly string[], lowerName: string): string[] {
  const values: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!
    if (name.length === lowerName.length && name.toLowerCase() === lowerName) values.push(raw[i + 1]!)
  }
  return values
}

/** Whether the body is encoded (RFC 9110 section 8.4). */
export function hasContentCoding(raw: readonly string[]): boolean {
  return fieldValues(raw, 'content-encoding').some(coding => coding.toLowerCase() !== 'identity')
}

/**
 * The fields to send upstream: all end-to-end ones in their order, without the tokens (spec 4.4).
 *
 * @param tokenNames names of the fields that carry or may carry the agent's token, as `foldName` writes them
 */
export function upstreamFields(
  raw: readonly string[],
  { names, nominated }: RequestFields,
  tokenNames: readonly string[],
): string[] {
  const out: string[] = []
  for (let i = 0; i < names.length; i++) {
    const { lower, folded, hopByHopRequest } = names[i]!
    if (hopByHopRequest || nominated?.has(lower) || tokenNames.includes(folded)) continue
    out.push(raw[2 * i]!, raw[2 * i + 1]!)
  }
  return out
}

/** The fields without those that `Connection` names: they are not sent on, and no decision may depend on them. */
export function withoutNominated(raw: readonly string[], { nominated }: RequestFields): readonly string[] {
  if (nominated === undefined) return raw
  const kept = [...raw]
  removeNames(kept, nominated)
  return kept
}

/** The same fields; those named `tokenNames`, as `foldName` writes them, have an empty value. */
export function withoutTokens(raw: readonly string[], tokenNames: readonly string[]): readonly string[] {
  return raw.map((text, i) => (i % 2 === 1 && tokenNames.includes(fieldName(raw[i - 1]!).folded) ? '' : text))
}

/** The fields of an upstream response to pass on, flat: name, value, name, value. */
export function downstreamFields(raw: readonly string[]): string[] {
  const out: string[] = []
  passFields(raw, out)
  return out
}

/** Appends the fields that are passed on to an empty list. Returns whether some of them direct the client (`Lead`). */
export function passFields(raw: readonly string[], out: string[]): boolean {
  let nominated: Set<string> | undefined
  let leads = false
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!
    const field = fieldName(name)
    if (field.lower === 'connection') nominated = connectionNames(raw[i + 1]!, nominated)
    if (field.leads !== undefined) leads = true
    if (!field.hopByHopResponse && !field.isOurs) out.push(name, raw[i + 1]!)
  }
  if (nominated !== undefined) removeNames(out, nominated)
  return leads
}

function connectionNames(value: string, before: Set<string> | undefined): Set<string> | undefined {
  const lower = value.toLowerCase()
  // Nearly every upstream sends this value, which names no field.
  if (lower === 'keep-alive' || lower === 'close') return before
  const names = before ?? new Set()
  for (const part of lower.split(',')) names.add(part.trim())
  return names
}

function removeNames(fields: string[], names: ReadonlySet<string>): void {
  let kept = 0
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!
    if (names.has(fieldName(name).lower)) continue
    fields[kept++] = name
    fields[kept++] = fields[i + 1]!
  }
  fields.length = kept
}
