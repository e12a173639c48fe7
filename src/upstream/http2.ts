import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import type { Origin } from '../base/origin.ts'
import { type Carrier, type CarrierEvents, maxStreams } from './connection.ts'
import {
  type ConnectionLease,
  closedConnection,
  failUnsent,
  type UpstreamHandler,
  type UpstreamRequest,
} from './handler.ts'
import { authorityOf } from './http1-head.ts'
import { Http2Exchange } from './http2-stream.ts'
import type { CarrierSettings } from './settings.ts'

/** Flow-control windows of one stream and of a whole connection, bytes. */
const streamWindow = 262_144
const connectionWindow = 1_048_576

/** A connection that speaks HTTP/2, over Node's own client. */
export class Http2Session implements Carrier {
  readonly #origin: Origin
  readonly #settings: CarrierSettings
  readonly #session: ClientHttp2Session
  readonly #events: CarrierEvents
  #maxStreams = 1
  readonly #exchanges = new Set<Http2Exchange>()
  /** An exchange has ended on this connection. */
  #served = false
  #idle: NodeJS.Timeout | undefined

  constructor(socket: Socket, origin: Origin, settings: CarrierSettings, events: CarrierEvents) {
    this.#origin = origin
    this.#settings = settings
    this.#events = events
    const session = connect(origin.key, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: streamWindow, maxHeaderListSize: settings.maxHeaderSize },
      maxSessionMemory: 64,
    })
    this.#session = session
    // Node tells of the connect a moment later: the session may have been given up meanwhile.
    session.once('connect', () => session.destroyed || session.setLocalWindowSize(connectionWindow))
    session.on('remoteSettings', ({ maxConcurrentStreams = maxStreams }) => this.#allow(maxConcurrentStreams))
    session.on('goaway', () => this.#retire())
    // Each stream gets its own event.
    session.on('error', () => {})
    session.once('close', () => {
      clearTimeout(this.#idle)
      this.#events.onDisconnect()
    })
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler, lease: ConnectionLease): boolean {
    if (this.destroyed) {
      failUnsent(handler, lease, closedConnection())
      return false
    }
    clearTimeout(this.#idle)
    const exchange: Http2Exchange = new Http2Exchange(request, handler, {
      open: () => this.#session.request(this.#fieldsOf(request), { endStream: request.body === null }),
      limits: this.#settings,
      lease,
      retire: () => this.#retire(),
      isStale: () => this.#served && this.#session.destroyed,
      onEnd: () => this.#closed(exchange),
    })
    this.#exchanges.add(exchange)
    exchange.start()
    return this.#hasCapacity
  }

  get destroyed(): boolean {
    return this.#session.closed || this.#session.destroyed
  }

  destroy(): void {
    clearTimeout(this.#idle)
    this.#session.destroy()
  }

  get #hasCapacity(): boolean {
    return this.#exchanges.size < this.#maxStreams && !this.destroyed
  }

  /**
   * Names are lower-case (RFC 9113 section 8.2.1). Fields of the same name become one, as RFC 9110 section 5.3 allows,
   * because Node refuses some that are there twice; cookies are joined in their own way (RFC 9113 section 8.2.3).
   */
  #fieldsOf({ method, path, fields: raw, body, bodyLength }: UpstreamRequest): OutgoingHttpHeaders {
    const fields: Record<string, string> = Object.create(null)
    fields[':method'] = method
    fields[':scheme'] = this.#origin.scheme
    fields[':authority'] = authorityOf(this.#origin)
    fields[':path'] = path
    const length = Buffer.isBuffer(body) ? body.length : bodyLength
    if (length !== undefined) fields['content-length'] = String(length)
    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i]!.toLowerCase()
      const before = fields[name]
      const separator = name === 'cookie' ? '; ' : ', '
      fields[name] = before === undefined ? raw[i + 1]! : before + separator + raw[i + 1]
    }
    // Trailers are passed on. Servers of gRPC demand that their client says so; the field is for one connection only.
    if (fields['content-type']?.startsWith('application/grpc')) fields['te'] = 'trailers'
    return fields
  }

  /** The upstream says how many streams it allows. Without any, the connection serves nobody, maybe for ever. */
  #allow(streams: number): void {
    this.#maxStreams = Math.min(streams, maxStreams)
    if (this.#hasCapacity) this.#events.onDrain()
    else this.#events.onFull()
    if (streams > 0) return
    this.#retire()
    for (const exchange of this.#exchanges) exchange.refuseUnsent()
  }

  #closed(exchange: Http2Exchange): void {
    this.#exchanges.delete(exchange)
    this.#served = true
    if (this.#exchanges.size === 0 && !this.#session.closed) {
      this.#idle = setTimeout(() => this.#session.close(), this.#settings.keepAliveMs).unref()
    }
    if (this.#hasCapacity) this.#events.onDrain()
  }

  /** Streams under way continue; then the session closes. */
  #retire(): void {
    this.#session.close()
    this.#events.onDisconnect()
  }
}
