/** Connections of clients that speak HTTP/2. Each of their requests is served as one of HTTP/1.1, with all of its checks. */
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { CarriedConnection, ConnectionEnd } from './connection-pair.ts'
import { relayStream } from './http2-stream.ts'

export interface Http2Limits {
  readonly maxStreams: number
  /** Longest time without a stream: before the first one, and later, milliseconds. */
  readonly firstMs: number
  readonly idleMs: number
  /** Longest time in which a client takes nothing of an answer that has ended, milliseconds. */
  readonly stalledMs: number
}

/** Most bytes of a header section: as much as HTTP/1.1 may have. */
const maxHeaderListSize = 16_384
/** Requests that a connection may cancel beyond the number that it lets come to their end (CVE-2023-44487). */
const maxResets = 200
/** Node's own limit comes later: it tells nobody. */
const streamResetBurst = 10_000
/** Time in which streams under way can still end when a connection is closed, milliseconds. */
const lingerMs = 1_000

export class Http2Connection {
  readonly #session: ServerHttp2Session
  readonly #carrier: TLSSocket
  readonly #limits: Http2Limits
  readonly #onRequest: (connection: CarriedConnection) => void
  readonly #onResets: () => void
  #open = 0
  #whole = 0
  #resets = 0
  #isRefused = false
  #idle: NodeJS.Timeout | undefined

  /**
   * @param onRequest takes the connection of one request
   * @param onResets called when the client has cancelled too many requests, and the connection is closed
   */
  constructor(
    carrier: TLSSocket,
    limits: Http2Limits,
    onRequest: (connection: CarriedConnection) => void,
    onResets: () => void,
  ) {
    this.#carrier = carrier
    this.#limits = limits
    this.#onRequest = onRequest
    this.#onResets = onResets
    const settings = { maxConcurrentStreams: limits.maxStreams, maxHeaderListSize, enablePush: false }
    // Node notes the end of a handshake for connections of its own servers alone, and would wait for it.
    Object.assign(carrier, { secureConnecting: false })
    const session = performServerHandshake(carrier, { settings, streamResetBurst })
    this.#session = session
    this.#awaitStream(limits.firstMs)
    session.on('stream', (stream, _fields, _flags, raw) => this.#serve(stream, raw))
    // The carrier gets it as well.
    session.on('error', () => {})
    session.once('close', () => clearTimeout(this.#idle))
  }

  /** Takes no more requests. Those under way may end. */
  drain(): void {
    this.#session.close()
  }

  /** The same, but what is not over soon is cut off. */
  destroySoon(): void {
    this.#session.close()
    // Node would wait for the client to close it, too.
    setTimeout(() => this.#carrier.destroy(), lingerMs).unref()
  }

  #serve(stream: ServerHttp2Stream, raw: readonly string[]): void {
    if (this.#isRefused) {
      stream.on('error', () => {}).destroy()
      return
    }
    clearTimeout(this.#idle)
    this.#open += 1
    const client = new ConnectionEnd()
    const server = new CarriedConnection(this.#carrier)
    ConnectionEnd.join(client, server)
    this.#onRequest(server)
    const limitRest = relayStream(stream, raw, client, isCancelled => this.#ended(isCancelled))
    server.once('close', () => limitRest(this.#limits.stalledMs))
  }

  #ended(isCancelled: boolean): void {
    this.#open -= 1
    if (isCancelled) this.#resets += 1
    else this.#whole += 1
    if (this.#resets > this.#whole + maxResets) this.#refuse()
    else if (this.#open === 0) this.#awaitStream(this.#limits.idleMs)
  }

  #refuse(): void {
    if (this.#isRefused || this.#session.destroyed) return
    this.#isRefused = true
    this.#onResets()
    this.#session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    // Node drops what it has not written when a session is destroyed.
    setImmediate(() => this.#session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM))
  }

  #awaitStream(ms: number): void {
    if (!this.#session.destroyed) this.#idle = setTimeout(() => this.destroySoon(), ms)
  }
}
