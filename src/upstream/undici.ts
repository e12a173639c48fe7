import type { Socket } from 'node:net'
import { Client } from 'undici'
import { asError } from '../base/as-error.ts'
import type { Carrier, CarrierEvents, OnSocket, OpenSocket } from './connection.ts'
import {
  type ConnectionLease,
  closedConnection,
  givenUp,
  type UpstreamHandler,
  type UpstreamRequest,
} from './handler.ts'
import { keepAliveMargin } from './http1.ts'
import { usesConnectionAuth, writeHead } from './http1-head.ts'
import type { CarrierSettings } from './settings.ts'
import { UndiciExchange } from './undici-exchange.ts'

/** Undici wants an origin. Where the connection really leads is decided by `connect`, and `Host` is set for each request. */
const nowhere = 'http://upstream.invalid'

/**
 * The second client of HTTP/1.1 (`Proxy:Client: Undici`): one undici client over one connection of ours, one exchange at
 * a time. Pool, dial, pinned addresses, queue and time limits are those of the built-in client; undici writes requests and
 * reads answers.
 */
export class UndiciConnection implements Carrier {
  readonly #authority: string
  readonly #settings: CarrierSettings
  readonly #client: Client
  readonly #events: CarrierEvents
  #socket: Socket | undefined
  #exchange: UndiciExchange | undefined
  #destroyed = false
  /** An exchange has ended on this connection. */
  #served = false

  constructor(authority: string, settings: CarrierSettings, connect: OpenSocket, events: CarrierEvents) {
    this.#authority = authority
    this.#settings = settings
    this.#events = events
    this.#client = new Client(nowhere, {
      // Undici's type wants an error or a socket; OnSocket cannot say that one of them is always there.
      connect: (_options, done) => this.#open(connect, done as OnSocket),
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: settings.maxHeaderSize,
      keepAliveTimeout: settings.keepAliveMs,
      keepAliveMaxTimeout: settings.maxKeepAliveMs,
      keepAliveTimeoutThreshold: keepAliveMargin,
      // Exchanges keep time themselves: a client that still sends makes no upstream late.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  get destroyed(): boolean {
    return this.#destroyed || this.#socket?.destroyed === true
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler, lease: ConnectionLease): boolean {
    const { method, path, fields, body, bodyLength } = request
    const exchange = new UndiciExchange(request, handler, {
      limits: this.#settings,
      lease,
      isReused: this.#served,
      onEnd: reusable => this.#over(reusable),
    })
    this.#exchange = exchange
    try {
      // The same check applies to both clients.
      writeHead(request, this.#authority)
    } catch (error) {
      exchange.fail(asError(error))
      return true
    }
    const length = Buffer.isBuffer(body) ? undefined : bodyLength
    const headers = ['Host', this.#authority, ...fields]
    if (length !== undefined) headers.push('Content-Length', String(length))
    const reset = usesConnectionAuth(fields) ? { reset: true } : {}
    this.#client.dispatch({ method, path, headers, body: exchange.body, ...reset }, exchange)
    return true
  }

  destroy(): void {
    this.#end()
  }

  /** Undici would connect again by itself: a second connection is refused. */
  #open(connect: OpenSocket, done: OnSocket): void {
    if (this.#destroyed || this.#socket !== undefined) {
      done(closedConnection())
      return
    }
    connect(undefined, (error, socket) => {
      if (socket === undefined || this.#destroyed) {
        socket?.destroy()
        done(error ?? givenUp())
        this.#end()
        return
      }
      this.#socket = socket
      this.#noteErrors(socket)
      socket.on('close', () => this.#end())
      socket.on('end', () => this.#ended())
      // Undici does nothing with a socket that it is given while it asks for it.
      process.nextTick(done, null, socket)
    })
  }

  /**
   * Undici takes a body that ends with a reset connection for complete, and destroys the socket of an answer that it cannot
   * parse. The event comes in a later tick, when the head may be on its way to the client.
   */
  #noteErrors(socket: Socket): void {
    const { destroy } = socket
    const noting: typeof destroy = error => {
      if (error !== undefined) this.#exchange?.broken(error)
      return destroy.call(socket, error)
    }
    socket.destroy = noting
    // Undici listens only when it has the socket.
    socket.on('error', () => {})
  }

  #ended(): void {
    if (this.#served && this.#exchange === undefined && !this.#destroyed) this.#events.onDropped()
  }

  #over(reusable: boolean): void {
    this.#exchange = undefined
    this.#served = true
    if (!reusable) this.#end()
  }

  #end(): void {
    if (this.#destroyed) return
    this.#destroyed = true
    // Later: undici may be in the middle of reading.
    setImmediate(() => this.#client.destroy().catch(() => {}))
    this.#events.onDisconnect()
  }
}
