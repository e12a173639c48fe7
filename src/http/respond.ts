import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { printableJson } from '../base/deceptive.ts'
import { refusalKinds } from '../base/refusal-kinds.ts'
import type { Refusal } from '../base/refusals.ts'
import { type ErrorFormat, reasonPhrase, refusalBody } from './error-body.ts'
import { requestIdField, versionField } from './names.ts'

/** Body bytes of a refused request that are read and dropped, so that the connection can stay open. */
const drainBytes = 65_536
/** Time in which those bytes must arrive, milliseconds. */
const drainMs = 2_000
/** Time in which the sender of a longer body can read the answer before the connection is closed, milliseconds. */
const lingerMs = 1_000

/** An answer as a value. */
export interface Reply {
  readonly status: number
  /** Header fields, flat: name, value, name, value. */
  readonly headers?: readonly string[]
  readonly body?: string | Buffer | Readable
}

/** A JSON answer. Deceptive characters are JSON escapes in it, so that the raw text shows them. */
export function jsonReply(status: number, value: unknown, headers: readonly string[] = []): Reply {
  return {
    status,
    headers: ['Content-Type', 'application/json; charset=utf-8', ...headers],
    body: printableJson(JSON.stringify(value)),
  }
}

/**
 * Sends an answer of the gateway itself. It is never sniffed, and never cached unless the reply has its own `Cache-Control`.
 * HEAD gets the headers alone.
 *
 * Resolves when the answer is handed over. A stream that fails breaks the connection, and does not reject.
 */
export async function sendReply(res: ServerResponse, reply: Reply, requestId: string): Promise<void> {
  const body = reply.body ?? ''
  const headers = ownHeaders(reply.headers, requestId)
  if (body instanceof Readable) return sendStream(res, reply.status, { headers, body })
  // These have no body, and so no `Content-Length` (RFC 9110 section 8.6).
  const bodiless = reply.status === 204 || reply.status === 304
  const length = bodiless ? [] : ['Content-Length', String(Buffer.byteLength(body))]
  res.writeHead(reply.status, [...headers, ...length])
  res.end(body)
}

interface Streamed {
  readonly headers: string[]
  readonly body: Readable
}

async function sendStream(res: ServerResponse, status: number, { headers, body }: Streamed): Promise<void> {
  try {
    res.writeHead(status, headers)
  } catch (error) {
    body.destroy()
    throw error
  }
  if (res.req.method === 'HEAD') {
    body.destroy()
    res.end()
    return
  }
  // Either end may close; pipeline then destroys the other one.
  await pipeline(body, res).catch(() => {})
}

/** What is known of the client of a refused request. */
export interface RefusedClient {
  /** Of errors that it reads. */
  readonly format?: ErrorFormat | undefined
  /** It knows nothing of the gateway, and may show its user the status line alone. */
  readonly isUnaware?: boolean
}

/**
 * Sends a refusal. The header `Gateway-Error` names the code, so that the refusal cannot be mistaken for an answer of an
 * upstream. The rest of a request body is read and dropped when it is short; otherwise the connection is closed, since bytes
 * after an unread body may not be a request.
 *
 */
export function sendRefusal(
  res: ServerResponse,
  refusal: Refusal,
  requestId: string,
  client: RefusedClient = {},
): void {
  if (res.headersSent) {
    res.destroy()
    return
  }
  const { type, body } = refusalBody(res.req.rawHeaders, refusal, { requestId, format: client.format })
  const headers = ['Content-Type', type]
  if (refusal.refusal === 'unauthenticated' && refusal.headers === undefined) headers.push('WWW-Authenticate', 'Bearer')
  if (refusal.headers !== undefined) headers.push(...refusal.headers)
  headers.push('Gateway-Error', refusal.refusal, 'Content-Length', String(Buffer.byteLength(body)))
  const unread = unreadBody(res.req)
  if (unread) headers.push('Connection', 'close')
  // pip, npm and `raise_for_status` of Python show the reason phrase alone.
  const phrase = client.isUnaware ? reasonPhrase(refusal) : refusalKinds[refusal.refusal].title
  res.writeHead(refusal.status, phrase, ownHeaders(headers, requestId))
  if (unread) linger(res, body)
  else {
    res.end(body)
    if (!res.req.complete && !res.req.readableEnded) awaitEnd(res.req)
  }
}

/** Closes the connection when the rest of an unused body does not arrive soon. */
function awaitEnd(req: IncomingMessage): void {
  const timer = setTimeout(() => req.socket.destroy(), drainMs)
  const done = () => clearTimeout(timer)
  req.once('end', done).once('close', done)
}

/** Adds the fields that every answer of the gateway has, unless `headers` has them. */
export function ownHeaders(headers: readonly string[] = [], requestId: string): string[] {
  const all = [...headers, requestIdField, requestId, ...versionField]
  const names = new Set(headers.filter((_, index) => index % 2 === 0).map(name => name.toLowerCase()))
  if (!names.has('cache-control')) all.push('Cache-Control', 'no-store')
  if (!names.has('x-content-type-options')) all.push('X-Content-Type-Options', 'nosniff')
  return all
}

/** Whether too much of the body may follow to read and drop it. */
function unreadBody(req: IncomingMessage): boolean {
  if (req.complete) return false
  if (req.headers['transfer-encoding'] !== undefined) return true
  const length = Number(req.headers['content-length'] ?? 0)
  // After `Expect: 100-continue` the sender may or may not send the body: the connection is in doubt.
  return length > drainBytes || (length > 0 && req.headers.expect !== undefined)
}

/**
 * Sends the whole answer, but closes the connection only a little later (RFC 9112 section 9.6): closing while the sender
 * still writes would reset the connection, and the answer could be lost with it. After drainBytes nothing more is read, so
 * the sender must wait.
 */
function linger(res: ServerResponse, body: string): void {
  const { req } = res
  let dropped = 0
  const end = () => res.end()
  const timer = setTimeout(end, lingerMs)
  res.once('close', () => clearTimeout(timer))
  req.on('data', (chunk: Buffer) => {
    dropped += chunk.length
    if (dropped > drainBytes) req.pause()
  })
  req.once('end', end)
  // The sender may reset the connection; `close` of the response then clears the timer.
  req.once('error', () => {})
  res.write(body)
}
