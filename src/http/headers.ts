import type { Refusal } from '../errors.ts'
import { isRefusal, refuse } from '../errors.ts'
import { fieldName } from './names.ts'

/** Most header fields of a request; node itself would drop the rest in silence. */
const maxFields = 128

const hostPattern = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]{0,5})?$/

/** End-to-end fields that a `Connection` field must not name: dropping them would change the request after the decision. */
const notNominable = /^(?:host|authorization|cookie|content-.*|expect|via)$/

/** What the gateway needs to know of a request's header section. Raw arrays are flat: name, value, name, value. */
export interface RequestFields {
  /** Body bytes announced; 0 when there is no body, -1 when it is chunked. */
  readonly contentLength: number
  readonly host: string
  /** Lower-cased names from `Connection` that are not hop-by-hop anyway; undefined when there are none. */
  readonly nominated: ReadonlySet<string> | undefined
  readonly maxForwards: string | undefined
  /** Value of `Idempotency-Key`. */
  readonly idempotencyKey: string | undefined
  /** Values of `Via`, joined. */
  readonly via: string
  /** The client asks for another protocol on this connection. */
  readonly upgrade: boolean
  /** That protocol is WebSocket. */
  readonly webSocket: boolean
}

interface Tally {
  hosts: number
  host: string
  codings: string | undefined
  contentLength: number
  connection: string | undefined
  maxForwards: string | undefined
  idempotencyKey: string | undefined
  hasTwoKeys: boolean
  via: string
  upgrade: boolean
  webSocket: boolean
  disguised: boolean
}

/** Reads the header section once and refuses what node lets through (RFC 9112 sections 3.2, 6.1; RFC 9110 7.6.1). */
export function readFields(raw: readonly string[], httpVersion: string): RequestFields | Refusal {
  // Node's parser also takes 0.9, with or without a version in the line, and 2.0.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refuse('http_version_not_supported')
  if (raw.length > maxFields * 2) return refuse('headers_too_large', `More than ${maxFields} header fields.`)
  const tally = tallyFields(raw)
  if (tally.disguised) return refuse('invalid_request', disguisedDetail)
  if (tally.hosts > 1) return refuse('invalid_request', 'More than one Host header.')
  if (!hostPattern.test(tally.host)) return refuse('invalid_request', 'The Host header is malformed.')
  if (tally.hasTwoKeys) return refuse('invalid_request', 'More than one Idempotency-Key header.')
  const contentLength = bodyLength(tally, httpVersion)
  if (typeof contentLength !== 'number') return contentLength
  const nominated = tally.connection === undefined ? undefined : nominatedNames(tally.connection)
  if (isRefusal(nominated)) return nominated
  const { host, maxForwards, idempotencyKey, via, upgrade, webSocket } = tally
  return { contentLength, host, nominated, maxForwards, idempotencyKey, via, upgrade, webSocket }
}

const disguisedDetail = 'A header name reads like a framing or gateway field to servers that treat _ and . as hyphens.'

function tallyFields(raw: readonly string[]): Tally {
  const tally: Tally = {
    hosts: 0,
    host: '',
    codings: undefined,
    contentLength: 0,
    connection: undefined,
    maxForwards: undefined,
    idempotencyKey: undefined,
    hasTwoKeys: false,
    via: '',
    upgrade: false,
    webSocket: false,
    disguised: false,
  }
  for (let i = 0; i < raw.length; i += 2) {
    const { lower, isDisguised } = fieldName(raw[i] as string)
    if (isDisguised) tally.disguised = true
    noteField(tally, lower, raw[i + 1] as string)
  }
  return tally
}

function noteField(tally: Tally, name: string, value: string): void {
  switch (name) {
    case 'host':
      tally.hosts += 1
      tally.host = value
      break
    case 'content-length':
      tally.contentLength = Number(value)
      break
    case 'transfer-encoding':
      tally.codings = joined(tally.codings, value)
      break
    case 'connection':
      tally.connection = joined(tally.connection, value)
      break
    case 'via':
      tally.via = tally.via === '' ? value : `${tally.via}, ${value}`
      break
    case 'max-forwards':
      tally.maxForwards = value
      break
    case 'idempotency-key':
      if (tally.idempotencyKey !== undefined) tally.hasTwoKeys = true
      tally.idempotencyKey = value
      break
    case 'upgrade':
      tally.upgrade = true
      if (/\bwebsocket\b/i.test(value)) tally.webSocket = true
  }
}

const joined = (before: string | undefined, value: string) => (before === undefined ? value : `${before}, ${value}`)

function bodyLength(tally: Tally, httpVersion: string): number | Refusal {
  if (tally.codings === undefined) return tally.contentLength
  if (tally.codings.trim().toLowerCase() !== 'chunked') {
    return refuse('invalid_request', 'Transfer-Encoding may only be chunked.')
  }
  return httpVersion === '1.1' ? -1 : refuse('invalid_request', 'Transfer-Encoding needs HTTP/1.1.')
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

/** Whether a field carries the token, or a lenient server would read it as the field that does. */
export function isTokenField(name: string, tokenName: string): boolean {
  return fieldName(name).folded === fieldName(tokenName).folded
}

/** Whether a field is one of those that carry or may carry the token: it is not sent on. */
export function isOneOfTokenFields(name: string, tokenNames: readonly string[]): boolean {
  return isOneOf(fieldName(name).folded, tokenNames)
}

/** All values of one field, in order. */
export function fieldValues(raw: readonly string[], lowerName: string): string[] {
  const values: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    if (name.length === lowerName.length && name.toLowerCase() === lowerName) values.push(raw[i + 1] as string)
  }
  return values
}

/**
 * The fields to send upstream: all end-to-end ones in their order, without the tokens (spec 4.4).
 * `tokenNames` are the lower-cased names of the fields that carry or may carry the agent's token.
 */
export function upstreamFields(raw: readonly string[], fields: RequestFields, tokenNames: readonly string[]): string[] {
  const out: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const { lower, folded, hopByHopRequest } = fieldName(raw[i] as string)
    if (hopByHopRequest || fields.nominated?.has(lower) || isOneOf(folded, tokenNames)) continue
    out.push(raw[i] as string, raw[i + 1] as string)
  }
  return out
}

/** The fields without those that `Connection` names: they are not sent on, and nothing may be decided by them. */
export function withoutNominated(raw: readonly string[], { nominated }: RequestFields): readonly string[] {
  return nominated === undefined ? raw : withoutNames(raw, nominated)
}

/** The same fields; those that carry or may carry the agent's token have an empty value. */
export function withoutTokens(raw: readonly string[], tokenNames: readonly string[]): readonly string[] {
  return raw.map((text, i) => (i % 2 === 1 && isOneOf(fieldName(raw[i - 1] as string).folded, tokenNames) ? '' : text))
}

function isOneOf(folded: string, tokenNames: readonly string[]): boolean {
  for (const token of tokenNames) if (fieldName(token).folded === folded) return true
  return false
}

/** The fields of an upstream response to pass on, flat: name, value, name, value. */
export function downstreamFields(raw: readonly string[]): string[] {
  const out: string[] = []
  let nominated: Set<string> | undefined
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const { lower, hopByHopResponse, own } = fieldName(name)
    if (lower === 'connection') nominated = connectionNames(raw[i + 1] as string, nominated)
    if (!hopByHopResponse && !own) out.push(name, raw[i + 1] as string)
  }
  return nominated === undefined ? out : withoutNames(out, nominated)
}

function connectionNames(value: string, before: Set<string> | undefined): Set<string> | undefined {
  const lower = value.toLowerCase()
  // What nearly every upstream says names no field.
  if (lower === 'keep-alive' || lower === 'close') return before
  const names = before ?? new Set()
  for (const part of lower.split(',')) names.add(part.trim())
  return names
}

function withoutNames(fields: readonly string[], names: ReadonlySet<string>): string[] {
  const out: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (!names.has(fieldName(name).lower)) out.push(name, fields[i + 1] as string)
  }
  return out
}
