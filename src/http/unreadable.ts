/** Bytes that node cannot parse as a request: they are answered on the socket itself, and the connection is closed. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type RefusalCode, refusalKinds } from '../base/refusal-kinds.ts'
import { howToCall, type Refusal, refuse } from '../base/refusals.ts'
import { problemOf } from './error-body.ts'
import { http2Answer } from './http2-preface.ts'
import { requestIdField, versionField } from './names.ts'

interface Answering {
  /** The current answer of a connection, and in it whether its head was written. */
  readonly _httpMessage?: (ServerResponse & { readonly _headerSent?: boolean }) | null
}

/** Milliseconds for which a client may go on sending: closing before that would reset the connection. */
const lingerMs = 1_000
/** Connections that were answered. Further bytes are dropped. */
const lingering = new WeakSet<Duplex>()

/** Answers that were replaced on their sockets. */
const replaced = new WeakMap<ServerResponse, RefusalCode>()

/** The answer that replaces `res`, which is not finished, because the rest of the request could not be read. */
export function replacedBy(res: ServerResponse): RefusalCode | undefined {
  return replaced.get(res)
}

/** Answers unreadable bytes. Returns the code if they belong to no request that was dispatched. */
export function refuseUnreadable(
  error: NodeJS.ErrnoException,
  socket: Socket & Answering,
  requestId: string,
): RefusalCode | undefined {
  if (lingering.has(socket)) return undefined
  if (!socket.writable) {
    socket.destroy()
    return undefined
  }
  const answer = socket._httpMessage ?? undefined
  const code = unreadableCode(error)
  if (answer?.req.complete === true) {
    // The request before is valid: it gets its own answer, and then the connection is closed.
    answer.shouldKeepAlive = false
    answer.once('finish', () => socket.destroySoon())
  } else if (answer?._headerSent === true) {
    // The head of another answer was sent already: no second one may follow. What is written is still sent.
    socket.destroySoon()
  } else {
    if (answer !== undefined) replaced.set(answer, code)
    if (code === 'http_version_not_supported') endHttp2(socket, requestId)
    else endRaw(socket, code, requestId)
  }
  return answer === undefined ? code : undefined
}

function unreadableCode({ code }: NodeJS.ErrnoException): RefusalCode {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return 'headers_too_large'
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return 'body_too_large'
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'request_timeout'
    case 'HPE_PAUSED_H2_UPGRADE':
      return 'http_version_not_supported'
    default:
      return 'invalid_request'
  }
}

/** Writes an answer without a response object, and closes the connection. */
function endRaw(socket: Duplex, code: RefusalCode, requestId: string): void {
  // The rest of the request may be in further records of TLS. Closing before they are read would reset the connection, and
  // the answer would be lost.
  sendRaw(socket, refuse(code), { requestId, phrase: refusalKinds[code].title, lingers: 'encrypted' in socket })
}

/** Answers CONNECT. Clients whose tunnel fails show the reason phrase at most. */
export function refuseTunnel(socket: Duplex, requestId: string): void {
  const refusal = refuse('method_not_allowed', `The gateway opens no tunnels. ${howToCall}`)
  sendRaw(socket, refusal, { requestId, phrase: 'No tunnels here: call /proxy/<URL>' })
}

interface RawOptions {
  readonly requestId: string
  readonly phrase: string
  /** Further bytes are dropped before the connection is closed. */
  readonly lingers?: boolean
}

function sendRaw(socket: Duplex, refusal: Refusal, { requestId, phrase, lingers = false }: RawOptions): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const body = textOf(refusal, requestId)
  const head = [
    `HTTP/1.1 ${refusal.status} ${phrase}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    `Gateway-Error: ${refusal.refusal}`,
    `${requestIdField}: ${requestId}`,
    versionField.join(': '),
    'Connection: close',
  ]
  const text = `${head.join('\r\n')}\r\n\r\n${body}`
  if (lingers) endLater(socket, text)
  else socket.end(text, () => socket.destroy())
}

/** Ends the connection, but drops further bytes for a while before closing it (RFC 9112 section 9.6). */
function endLater(socket: Duplex, last: string | Buffer): void {
  lingering.add(socket)
  socket.end(last)
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}

function endHttp2(socket: Duplex, requestId: string): void {
  const code = 'http_version_not_supported'
  const refusal = refuse(code)
  const { status, detail } = refusal
  const body = textOf(refusal, requestId)
  const type = ['content-type', 'application/problem+json', 'cache-control', 'no-store']
  const [versionName, version] = versionField
  const ours = [requestIdField.toLowerCase(), requestId, versionName.toLowerCase(), version]
  const headers = [...type, 'gateway-error', code, ...ours]
  endLater(socket, http2Answer({ status, headers, body, reason: detail }))
}

const textOf = (refusal: Refusal, requestId: string): string => JSON.stringify({ ...problemOf(refusal), requestId })
