/**
 * Heads in HTTP/1.1 (RFC 9112): that of a request written, that of an answer read, strictly; and what in a head authenticates the
 * connection.
 */
import type { Origin } from '../base/origin.ts'
import { fieldName } from '../http/names.ts'
import { isStatus, type ResponseHead, UpstreamError, type UpstreamRequest } from './handler.ts'
import type { KnownHead } from './known-head.ts'

/** How the end of a body is known (RFC 9112 section 6.3). */
export type Framing = 'none' | 'length' | 'chunked' | 'close'

export interface Http1Head extends ResponseHead {
  readonly framing: Framing
  /** The connection may be used again. */
  readonly persistent: boolean
  /** Seconds for which the upstream keeps an idle connection, when it says so. 0: not at all. */
  readonly keepAlive: number | undefined
  known: KnownHead | undefined
}

/** Bytes that a head must not contain: all but field content and complete line ends. */
const unsafeHead = /[^\t\x20-\x7e\x80-\xff\r\n]|\r(?!\n)|(?<!\r)\n/
const methodName = /^[A-Z-]+$/
const unsafeValue = /[^\t\x20-\x7e\x80-\xff]/
const unsafeTarget = /[^\x21-\x7e]|^$/
/** Options of `Connection` (RFC 9110 section 7.6.1). */
const closing = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i
const keeping = /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/i
const digits = /^\d{1,15}$/

/** Methods whose requests have a body, so that an absent one is said to be empty (RFC 9110 section 8.6). */
const withBody = new Set(['POST', 'PUT', 'PATCH'])

function malformed(what: string): UpstreamError {
  return new UpstreamError('malformed', what)
}

/**
 * The head of a request, with Host and the framing of its body.
 * @throws when a part contains bytes that would change the framing. It was checked on arrival; this is a second check.
 */
export function writeHead(request: UpstreamRequest, authority: string): string {
  const { method, path, fields, body, bodyLength, upgrades } = request
  if (!methodName.test(method) || unsafeTarget.test(path)) throw new Error('cannot happen: a malformed request line')
  let head = `${method} ${path} HTTP/1.1\r\nHost: ${authority}\r\n`
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!
    const value = fields[i + 1]!
    const { isToken, hopByHopRequest } = fieldName(name)
    if (!isToken || hopByHopRequest || unsafeValue.test(value)) throw new Error('cannot happen: a field out of place')
    head += `${name}: ${value}\r\n`
  }
  if (upgrades === true) return `${head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`
  if (body === null) return withBody.has(method) ? `${head}Content-Length: 0\r\n\r\n` : `${head}\r\n`
  const length = Buffer.isBuffer(body) ? body.length : bodyLength
  return length === undefined ? `${head}Transfer-Encoding: chunked\r\n\r\n` : `${head}Content-Length: ${length}\r\n\r\n`
}

/** Host and port as they stand in `Host`. */
export function authorityOf({ scheme, key }: Origin): string {
  return key.slice(`${scheme}://`.length)
}

/** What the fields say about their message. */
export interface Framed {
  readonly isOld: boolean
  contentLength: number | undefined
  chunked: boolean
  close: boolean
  keptAlive: boolean
  keepAlive: number | undefined
}

/**
 * Parses the head of an answer. Nothing is repaired: it is rejected if two parsers could differ about its end.
 *
 * @param text all of it, bytes as the code points of the same number, with the line end of its last line
 * @param method of the request: the answer to HEAD has no body
 * @throws UpstreamError `malformed`
 */
export function readHead(text: string, method: string): Http1Head {
  checkBytes(text)
  const lineEnd = text.indexOf('\r\n')
  const status = statusOf(text, lineEnd)
  const isOld = isOldLine(text)
  return headOf({ status, reason: text.slice(13, lineEnd), fields: readFields(text, lineEnd + 2), isOld }, method)
}

/** The parts of a head, as they were received. */
interface ReceivedHead extends Pick<ResponseHead, 'status' | 'reason'> {
  readonly fields: string[]
  readonly isOld: boolean
}

/** @throws UpstreamError when two readers could differ about the end of the answer */
export function headOf({ status, reason, fields, isOld }: ReceivedHead, method: string): Http1Head {
  const framed = notFramed(isOld)
  noteFields(framed, fields)
  const framing = framingOf(framed, method, status)
  // A server may send a body that the status or HEAD forbids; it would arrive in the place of the next answer. Some
  // servers send one after HEAD, announced or not.
  const announces = framed.chunked || (framed.contentLength ?? 0) > 0
  const owesBody = framing === 'none' && (announces || (method === 'HEAD' && status >= 200))
  if (isBodiless(status)) dropLength(fields, framed)
  return {
    status,
    reason,
    fields,
    contentLength: framed.contentLength,
    framing,
    persistent: framing !== 'close' && !owesBody && !framed.close && (!isOld || framed.keptAlive),
    keepAlive: framed.keepAlive,
    known: undefined,
  }
}

/** @throws UpstreamError when `text` holds anything but what lines of a head are made of */
export function checkBytes(text: string): void {
  if (unsafeHead.test(text)) throw malformed('a byte that does not belong there')
}

/**
 * The status in `HTTP/1.1 200 OK`; the reason may be empty, and so may the space before it.
 * @param lineEnd where the status line ends
 */
export function statusOf(text: string, lineEnd: number): number {
  const status = text.slice(9, 12)
  const isWhole = lineEnd === 12 || (lineEnd > 12 && text[12] === ' ')
  const isHttp1 = text.startsWith('HTTP/1.1 ') || text.startsWith('HTTP/1.0 ')
  if (!isWhole || !isHttp1 || !/^\d{3}$/.test(status) || !isStatus(Number(status))) throw malformed('the status line')
  return Number(status)
}

export const isOldLine = (statusLine: string): boolean => statusLine.startsWith('HTTP/1.0')

/** Field lines from `start` on, flat. Folded ones (RFC 9112 section 5.2) are refused, as is space before a colon. */
export function readFields(text: string, start: number): string[] {
  const fields: string[] = []
  let at = start
  while (at < text.length) {
    const lineEnd = text.indexOf('\r\n', at)
    const colon = text.indexOf(':', at)
    if (colon < at || colon > lineEnd) throw malformed('a field without a colon')
    const name = text.slice(at, colon)
    if (!fieldName(name).isToken) throw malformed('the name of a field')
    const value = trimmed(text, colon + 1, lineEnd)
    // Nearly always there is one blank, before the value.
    const blanks = lineEnd - colon - 1 - value.length
    if ((blanks > 1 || text.charCodeAt(colon + 1) === tab) && isFraming(name)) checkBlanks(text, colon, lineEnd)
    fields.push(name, value)
    at = lineEnd + 2
  }
  return fields
}

const space = 0x20
const tab = 0x09

/** Llhttp does not recognise `chunked` when a tab follows it. */
const isFraming = (name: string): boolean => /^(?:content-length|transfer-encoding)$/i.test(name)

function checkBlanks(text: string, start: number, end: number): void {
  if (text.slice(start, end).includes('\t')) throw malformed('a tab beside the framing of the body')
}

function trimmed(text: string, start: number, end: number): string {
  let from = start
  let to = end
  while (from < to && isBlank(text.charCodeAt(from))) from += 1
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1
  return text.slice(from, to)
}

const isBlank = (code: number): boolean => code === space || code === tab

/** A message without any field. */
export function notFramed(isOld: boolean): Framed {
  return { isOld, contentLength: undefined, chunked: false, close: false, keptAlive: false, keepAlive: undefined }
}

/** @throws UpstreamError when two readers could differ about the end of the message */
export function noteFields(framed: Framed, fields: readonly string[]): void {
  for (let i = 0; i < fields.length; i += 2) noteField(framed, fieldName(fields[i]!).lower, fields[i + 1]!)
  if (framed.chunked && (framed.contentLength !== undefined || framed.isOld)) throw malformed('two framings')
}

function noteField(framed: Framed, name: string, value: string): void {
  switch (name) {
    case 'content-length':
      if (framed.contentLength !== undefined || !digits.test(value)) throw malformed('Content-Length')
      framed.contentLength = Number(value)
      break
    case 'transfer-encoding':
      // The gateway would have to decode any other coding, because the field is not passed on.
      if (framed.chunked || value.toLowerCase() !== 'chunked') throw malformed('Transfer-Encoding')
      framed.chunked = true
      break
    case 'connection':
      framed.close ||= closing.test(value)
      framed.keptAlive ||= keeping.test(value)
      break
    case 'keep-alive':
      framed.keepAlive ??= keepAliveOf(value)
      break
    default:
      framed.close ||= offersConnectionAuth(name, value)
  }
}

function keepAliveOf(value: string): number | undefined {
  const seconds = /(?:^|[\s,;])timeout=(\d{1,9})/i.exec(value)?.[1]
  return seconds === undefined ? undefined : Number(seconds)
}

/** Answers of these statuses have no body and no length. 304 has the length of the answer that it replaces. */
const isBodiless = (status: number): boolean => status < 200 || status === 204

/** A client may trust this length, and read the next answer as the body (RFC 9110 section 8.6). */
function dropLength(fields: string[], framed: Framed): void {
  if (framed.contentLength === undefined) return
  framed.contentLength = undefined
  fields.splice(
    fields.findIndex((name, i) => i % 2 === 0 && fieldName(name).lower === 'content-length'),
    2,
  )
}

function framingOf({ contentLength, chunked }: Framed, method: string, status: number): Framing {
  if (method === 'HEAD' || isBodiless(status) || status === 304) return 'none'
  if (chunked) return 'chunked'
  if (contentLength === undefined) return 'close'
  return contentLength === 0 ? 'none' : 'length'
}

/**
 * Schemes that authenticate the connection instead of a request (RFC 4559 section 3): the agent that sends the next request on
 * it acts with the rights of the one before. Such a connection carries one request.
 */
const schemes = 'ntlm|negotiate|nego2|nego|nego-?extender|kerberos|credssp|pku2u'
/** A field of an answer may name several schemes, at any place. A match inside of a quoted string does no harm. */
const offered = new RegExp(`(?:^|[\\s,])(?:${schemes})(?=$|[\\s,])`, 'i')
/** Credentials begin with their scheme: a token behind it is not searched. */
const used = new RegExp(`^[\\s,]*(?:${schemes})(?=$|[\\s,])`, 'i')

const authorization = 'authorization'
const proxyAuthorization = 'proxy-authorization'

/** Whether the fields of a request, flat, authenticate the connection that they are sent on. */
export function usesConnectionAuth(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    const { length } = fields[i]!
    // Most names have another length: comparing that first costs next to nothing.
    if (length !== authorization.length && length !== proxyAuthorization.length) continue
    const name = fields[i]!.toLowerCase()
    if ((name === authorization || name === proxyAuthorization) && used.test(fields[i + 1]!)) return true
  }
  return false
}

/** Whether a field of an answer says that the connection is, or may become, authenticated. */
export function offersConnectionAuth(lowerName: string, value: string): boolean {
  switch (lowerName) {
    case 'www-authenticate':
    case 'proxy-authenticate':
      return offered.test(value)
    case 'persistent-auth':
      return value.trim().toLowerCase() !== 'false'
    case 'proxy-support':
      return value.toLowerCase().includes('session-based-authentication')
    default:
      return false
  }
}
