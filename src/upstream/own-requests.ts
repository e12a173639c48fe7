/** Requests of the gateway itself: webhooks, e-mail, and the documents of the identity provider. */
import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { normaliseHost } from '../base/host.ts'
import { createOrigin, type Origin } from '../base/origin.ts'
import { isRefusal } from '../base/refusals.ts'
import { hasContentCoding } from '../http/headers.ts'
import type { Connections } from './connections.ts'
import type { Dial } from './dial.ts'
import { failureKind } from './failure.ts'
import type { Control, ResponseHead, UpstreamHandler, UpstreamRequest } from './handler.ts'
import type { UpstreamRoute } from './resolve.ts'

/** A message to an address that the operator has configured. */
export interface PostMessage {
  /** Absent: POST. */
  readonly method?: 'GET' | 'POST'
  readonly url: string
  /** Flat: name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: string | Buffer
}

/** There is no usable answer. The text names the host alone: URLs of webhooks often hold a key. */
export class OwnRequestError extends Error {
  override readonly name = 'OwnRequestError'
}

/** Each request has a connection of its own; no redirect is followed. They reject with OwnRequestError. */
export interface OwnRequests {
  /** Posts once. Resolves with the status; rejects when there is none within the time limit, or at the abort. */
  post(message: PostMessage, signal: AbortSignal): Promise<number>
  /**
   * Asks once, and reads the answer, whatever its status: at most 64 KiB. Rejects as `post` does.
   *
   * @param ms for the whole exchange, milliseconds; absent: as long as `post`
   */
  ask(message: PostMessage, signal: AbortSignal, ms?: number): Promise<OwnAnswer>
  /** Reads a small document: status 200, neither compressed nor longer than 64 KiB. */
  fetch(url: URL): Promise<Uint8Array>
  /** Opens a TCP connection in the clear: the protocol on it is the caller's. */
  connect(host: string, port: number, signal: AbortSignal): Promise<Socket>
  /** Posts a form, and reads a document in the same way. */
  submitForm(url: URL, form: { readonly authorization: string; readonly body: string }): Promise<Uint8Array>
}

export interface OwnAnswer extends Pick<ResponseHead, 'status' | 'fields'> {
  readonly body: Uint8Array
}

export interface OwnRequestParts {
  readonly connections: Pick<Connections, 'sendAlone'>
  readonly route: UpstreamRoute
  readonly dialTcp: Dial
  /** Origins of documents that may be anywhere, as URLs write them. */
  readonly trusted?: readonly string[]
  /** For a whole exchange, look-up included, milliseconds. */
  readonly postTimeoutMs?: number
  readonly fetchTimeoutMs?: number
}

const maxDocumentBytes = 65_536
const documentFields = ['Accept', 'application/json', 'Accept-Encoding', 'identity']
const neverAborts = new AbortController().signal

export function createOwnRequests(parts: OwnRequestParts): OwnRequests {
  const { route, trusted = [], postTimeoutMs = 10_000, fetchTimeoutMs = 2_000 } = parts

  const read = async (url: URL, request: Omit<UpstreamRequest, 'path'>): Promise<Uint8Array> => {
    const { origin, path } = destinationOf(url)
    const isTrusted = trusted.includes(url.origin)
    const limits = { ms: fetchTimeoutMs, bytes: maxDocumentBytes, signal: neverAborts, isTrusted }
    const { status, fields, body } = await exchange(origin, { ...request, path }, limits, parts)
    if (status !== 200) throw new OwnRequestError(`${origin.host}: status ${status}`)
    if (hasContentCoding(fields)) throw new OwnRequestError(`${origin.host}: a compressed answer`)
    return body
  }

  const send = ({ method = 'POST', url, headers, body }: PostMessage, limits: Limits): Promise<OwnAnswer> => {
    const { origin, path } = destinationOf(new URL(url))
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const request = { method, path, fields: headers, body: method === 'GET' ? null : bytes }
    return exchange(origin, request, limits, parts)
  }

  return {
    post: async (message, signal) => (await send(message, { ms: postTimeoutMs, bytes: 0, signal })).status,
    ask: (message, signal, ms = postTimeoutMs) =>
      send(message, { ms, bytes: maxDocumentBytes, signal, readsErrors: true }),
    fetch: url => read(url, { method: 'GET', fields: documentFields, body: null }),
    async connect(host, port, signal) {
      const origin = createOrigin('http', normaliseHost(host) ?? host, port)
      const found = await route.find(origin)
      if (isRefusal(found))
        throw new OwnRequestError(`${host}: ${found.failure ?? `refused by Egress, ${found.cause}`}`)
      const { promise, resolve, reject } = Promise.withResolvers<Socket>()
      parts.dialTcp(found.addresses, { origin, http2: false }, (error, socket) => {
        if (socket === undefined)
          reject(new OwnRequestError(`${host}: ${failureKind(error ?? new Error('no socket'))}`))
        else if (signal.aborted) resolve(socket.destroy())
        else resolve(socket)
      })
      return promise
    },
    submitForm(url, { authorization, body }) {
      const form = ['Content-Type', 'application/x-www-form-urlencoded', 'Authorization', authorization]
      return read(url, { method: 'POST', fields: [...documentFields, ...form], body: Buffer.from(body) })
    },
  }
}

/** Where a URL of the configuration leads. */
export function destinationOf(url: URL): { readonly origin: Origin; readonly path: string } {
  const scheme = url.protocol === 'http:' ? 'http' : 'https'
  const port = Number(url.port) || (scheme === 'http' ? 80 : 443)
  // Rules know a name without the dot that may end it.
  const host = normaliseHost(url.hostname) ?? url.hostname
  return { origin: createOrigin(scheme, host, port), path: url.pathname + url.search }
}

interface Limits {
  readonly ms: number
  /** Maximum of bytes of a body. 0: it is not read. */
  readonly bytes: number
  readonly signal: AbortSignal
  readonly isTrusted?: boolean
  /** Bodies are read with statuses other than 200 as well. */
  readonly readsErrors?: boolean
}

function exchange(
  origin: Origin,
  request: UpstreamRequest,
  { ms, bytes, signal, isTrusted = false, readsErrors = false }: Limits,
  { route, connections }: OwnRequestParts,
): Promise<OwnAnswer> {
  const reader = new OwnAnswerReader(origin.host, bytes, readsErrors)
  const isOver = new AbortController()
  setTimeout(ms, undefined, { signal: AbortSignal.any([signal, isOver.signal]) }).then(
    () => reader.giveUp(`no answer within ${ms} ms`),
    () => reader.giveUp('the gateway stopped'),
  )
  const send = async () => {
    const found = await (isTrusted ? route.findTrusted(origin) : route.find(origin))
    if (isRefusal(found)) reader.giveUp(found.failure ?? `refused by Egress, ${found.cause}`)
    else if (!reader.isOver) connections.sendAlone(origin, found, request, reader)
  }
  void send()
  return reader.answer.finally(() => isOver.abort())
}

/** Reads a short answer, or its head alone. */
class OwnAnswerReader implements UpstreamHandler {
  readonly answer: Promise<OwnAnswer>
  isOver = false
  readonly #host: string
  readonly #maxBytes: number
  readonly #readsErrors: boolean
  readonly #outcome = Promise.withResolvers<OwnAnswer>()
  readonly #chunks: Buffer[] = []
  #length = 0
  #head: ResponseHead | undefined
  #control: Control | undefined

  constructor(host: string, maxBytes: number, readsErrors: boolean) {
    this.#host = host
    this.#maxBytes = maxBytes
    this.#readsErrors = readsErrors
    this.answer = this.#outcome.promise
  }

  onRequestStart(control: Control): void {
    this.#control = control
    if (this.isOver) this.#cutOff()
  }

  onResponseStart(head: ResponseHead): void {
    this.#head = head
    if (this.#maxBytes > 0 && (head.status === 200 || this.#readsErrors)) return
    // The body is not read: closing the connection is the short way to discard it.
    this.#complete(head)
    this.#cutOff()
  }

  onResponseData(chunk: Buffer): void {
    this.#length += chunk.length
    if (this.#length > this.#maxBytes) this.giveUp(`more than ${this.#maxBytes} bytes`)
    else this.#chunks.push(Buffer.from(chunk))
  }

  onResponseEnd(): void {
    if (this.#head !== undefined) this.#complete(this.#head)
  }

  onResponseError(error: Error): void {
    this.giveUp(failureKind(error), error)
  }

  giveUp(why: string, cause?: Error): void {
    if (this.isOver) return
    this.isOver = true
    this.#outcome.reject(new OwnRequestError(`${this.#host}: ${why}`, { cause }))
    this.#cutOff()
  }

  #complete({ status, fields }: ResponseHead): void {
    this.isOver = true
    this.#outcome.resolve({ status, fields, body: Buffer.concat(this.#chunks) })
  }

  #cutOff(): void {
    this.#control?.abort(new OwnRequestError('over'))
  }
}
