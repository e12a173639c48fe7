import type { Socket } from 'node:net'
import { freeBytes } from '../http/free-bytes.ts'
import type { Carrier, CarrierEvents, OpenSocket } from './connection.ts'
import { SilenceTimer } from './exchange.ts'
import {
  type ConnectionLease,
  closedConnection,
  failUnsent,
  givenUp,
  StaleConnectionError,
  UpstreamError,
  type UpstreamHandler,
  type UpstreamRequest,
} from './handler.ts'
import { type ExchangeEnd, Http1Exchange, type Http1Parts } from './http1-exchange.ts'
import { readHead } from './http1-head.ts'
import { HeadMemory } from './known-head.ts'
import type { CarrierSettings } from './settings.ts'

/** An idle connection is not used any more this long before the upstream would close it, milliseconds. */
export const keepAliveMargin = 2_000

/** The timer of an idle connection is met up to an eighth late: it must close before the upstream does. */
const idleShare = 8 / 9

/**
 * All connections of this thread read into this buffer: each read is consumed before the next one. Streams use a new
 * buffer of 64 KiB for each.
 */
const readBuffer = Buffer.allocUnsafeSlow(65_536)

/**
 * A connection that speaks HTTP/1.1, one exchange at a time. It connects at the first. Bytes that arrive between exchanges
 * close it, since they could be taken for the answer to the next request.
 */
export class Http1Connection implements Carrier {
  readonly #authority: string
  readonly #settings: CarrierSettings
  readonly #connect: OpenSocket
  readonly #events: CarrierEvents
  readonly #heads = new HeadMemory(readHead)
  #socket: Socket | undefined
  #exchange: Http1Exchange | undefined
  #parts: Http1Parts | undefined
  readonly #headTimer = new SilenceTimer(() => this.#exchange?.headLate())
  readonly #idleTimer = new SilenceTimer(() => {
    if (this.#exchange === undefined) this.#end()
  })
  #destroyed = false
  /** An exchange has ended on this connection. */
  #served = false

  constructor(authority: string, settings: CarrierSettings, connect: OpenSocket, events: CarrierEvents) {
    this.#authority = authority
    this.#settings = settings
    this.#connect = connect
    this.#events = events
  }

  get destroyed(): boolean {
    return this.#destroyed
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler, lease: ConnectionLease): boolean {
    if (this.#socket !== undefined) this.#start(request, handler, lease)
    else {
      this.#open(error => {
        if (error !== undefined) failUnsent(handler, lease, error)
        else this.#start(request, handler, lease)
      })
    }
    return true
  }

  destroy(): void {
    this.#end(givenUp())
  }

  #open(done: (error?: Error) => void): void {
    const read = (bytes: number) => {
      this.#read(readBuffer.subarray(0, bytes))
      return true
    }
    this.#connect({ buffer: readBuffer, callback: read }, (error, socket) => {
      if (socket === undefined || this.#destroyed) {
        socket?.destroy()
        const cause = error ?? givenUp()
        this.#end(cause)
        done(cause)
        return
      }
      this.#listen(socket)
      done()
    })
  }

  #listen(socket: Socket): void {
    this.#socket = socket
    socket.on('end', () => this.#ended())
    socket.on('error', error => this.#end(this.#lost(error)))
    socket.on('close', () => this.#end(this.#lost(closedConnection())))
    socket.on('drain', () => this.#exchange?.drained())
    // Only a socket without `onread` emits this.
    socket.on('data', (bytes: Buffer) => {
      this.#read(bytes)
      freeBytes(bytes)
    })
  }

  #start(request: UpstreamRequest, handler: UpstreamHandler, lease: ConnectionLease): void {
    const socket = this.#socket
    if (socket === undefined || this.#destroyed) {
      failUnsent(handler, lease, closedConnection())
      return
    }
    this.#watchHead()
    // One after the other, exchanges share their parts: the lease is mostly the same too.
    if (this.#parts?.lease !== lease) this.#parts = this.#partsOf(socket, lease)
    this.#exchange = new Http1Exchange(request, handler, this.#parts)
    this.#exchange.start(this.#authority)
  }

  #partsOf(socket: Socket, lease: ConnectionLease): Http1Parts {
    return {
      socket,
      limits: this.#settings,
      heads: this.#heads,
      lease,
      onSent: () => this.#watchHead(),
      onEnd: how => this.#over(how),
    }
  }

  /** Starts the time limit for the head of the answer. */
  #watchHead(): void {
    this.#headTimer.begin(this.#settings.headersTimeoutMs)
  }

  #read(bytes: Buffer): void {
    if (this.#exchange === undefined) this.#end(new UpstreamError('malformed', 'an answer that nobody asked for'))
    else this.#exchange.read(bytes)
  }

  #ended(): void {
    const cause = this.#lost(closedConnection())
    if (!this.#isStale) this.#exchange?.ended()
    this.#end(cause)
  }

  get #isStale(): boolean {
    return this.#served && this.#exchange?.hasAnswer === false
  }

  #lost(error: Error): Error {
    if (this.#served && this.#exchange === undefined && !this.#destroyed) this.#events.onDropped()
    return this.#isStale ? new StaleConnectionError() : error
  }

  /** The exchange is over; its handler is called after this. */
  #over({ reusable, keepAlive }: ExchangeEnd): void {
    this.#exchange = undefined
    this.#served = true
    const { keepAliveMs, maxKeepAliveMs } = this.#settings
    const idleMs = keepAlive === undefined ? keepAliveMs : Math.min(keepAlive * 1_000 - keepAliveMargin, maxKeepAliveMs)
    if (!reusable || idleMs <= 0) this.#end()
    else this.#idleTimer.begin(idleMs * idleShare)
  }

  #end(error?: Error): void {
    if (this.#destroyed) return
    this.#destroyed = true
    this.#idleTimer.stop()
    this.#headTimer.stop()
    this.#socket?.destroy()
    this.#events.onDisconnect()
    if (error !== undefined) this.#exchange?.fail(error)
  }
}
