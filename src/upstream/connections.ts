import type { Dispatcher } from 'undici'
import { Client } from 'undici'
import type { Clock } from '../clock.ts'
import type { Dial, DialSettings } from './dial.ts'
import { createDial } from './dial.ts'
import type { Origin } from './origin.ts'
import type { Resolution } from './resolve.ts'

export type { Dispatcher }

export interface ConnectionSettings extends DialSettings {
  /** Connections to one origin, and to all together. */
  readonly perOrigin: number
  readonly total: number
  /** Requests that may wait for a connection to one origin, and how long, milliseconds. */
  readonly maxWaiting: number
  readonly waitMs: number
  readonly headersTimeoutMs: number
  readonly idleTimeoutMs: number
}

/** Largest header section of an upstream response, bytes. */
const maxHeaderSize = 65_536
const idleMs = 4_000
/** Longest idle time that an upstream's Keep-Alive hint may ask for. */
const maxIdleMs = 60_000

/** Handler of one upstream request. `connection` is set before it is sent; it calls `release` exactly once. */
export interface UpstreamHandler extends Dispatcher.DispatchHandler {
  connection: Connection | undefined
  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void
}

export type UpstreamRequest = Pick<Dispatcher.DispatchOptions, 'method' | 'path' | 'headers' | 'body'>

/** No connection became free in time. Nothing was sent. */
export class UpstreamBusyError extends Error {
  override readonly name = 'UpstreamBusyError'
}

interface Waiter {
  readonly resolution: Resolution
  readonly request: UpstreamRequest
  readonly handler: UpstreamHandler
  readonly since: number
}

interface Posted {
  readonly connection: Connection
  readonly request: UpstreamRequest
  readonly handler: UpstreamHandler
}

interface Pool {
  readonly origin: Origin
  /** Last in, first out: the warmest connection is used again, the others may age and close. */
  readonly idle: Connection[]
  readonly waiting: Waiter[]
  open: number
}

/**
 * Connections to upstreams: one undici Client each, because a stack of single connections costs less CPU than a
 * pool, and because each is pinned to the addresses that egress has checked.
 */
export class Connections {
  readonly #settings: ConnectionSettings
  readonly #clock: Clock
  readonly #pools = new Map<string, Pool>()
  readonly #dial: Dial
  readonly #sweeper: NodeJS.Timeout
  #outbox: Posted[] = []
  #open = 0

  constructor(settings: ConnectionSettings, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
    this.#dial = createDial(settings)
    this.#sweeper = setInterval(() => this.#sweep(), 1_000).unref()
  }

  /** Open connections to all upstreams. */
  get size(): number {
    return this.#open
  }

  /**
   * Sends a request over a free connection to the checked addresses, or lets it wait for one. Any failure reaches
   * the handler as `onResponseError`; a request that did not get as far as `onRequestStart` was not sent.
   */
  send(origin: Origin, resolution: Resolution, request: UpstreamRequest, handler: UpstreamHandler): void {
    const pool = this.#poolOf(origin)
    const connection = this.#takeIdle(pool, resolution) ?? this.#openConnection(pool, resolution)
    if (connection !== undefined) this.#post(connection, request, handler)
    else if (pool.waiting.length < this.#settings.maxWaiting) {
      pool.waiting.push({ resolution, request, handler, since: this.#clock.steady() })
    } else handler.onResponseError(null, new UpstreamBusyError())
  }

  /** Sends over a connection of its own that nothing else has used or will use: for replays. */
  sendAlone(origin: Origin, resolution: Resolution, request: UpstreamRequest, handler: UpstreamHandler): void {
    const pool: Pool = { origin, idle: [], waiting: [], open: 1 }
    this.#open += 1
    this.#create(pool, resolution, true).dispatch(request, handler)
  }

  /** Takes a request that still waits out of the queue. False when it is under way or done. */
  cancel(origin: Origin, handler: UpstreamHandler): boolean {
    const waiting = this.#pools.get(origin.key)?.waiting
    const index = waiting?.findIndex(waiter => waiter.handler === handler) ?? -1
    if (waiting === undefined || index < 0) return false
    waiting.splice(index, 1)
    return true
  }

  /** Closes what is idle now and cuts off the rest. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper)
    const idle = [...this.#pools.values()].flatMap(pool => pool.idle.splice(0))
    this.#pools.clear()
    await Promise.all(idle.map(connection => connection.client.destroy()))
  }

  /** For Connection: it is free again. The next waiter gets it, or it goes on the stack. */
  giveBack(connection: Connection): void {
    const { pool } = connection
    const waiter = pool.waiting[0]
    if (waiter === undefined) pool.idle.push(connection)
    else if (connection.serves(waiter.resolution)) {
      pool.waiting.shift()
      this.#post(connection.take(), waiter.request, waiter.handler)
    } else {
      // The name points elsewhere now: this connection is of no more use to anyone.
      this.discard(connection)
    }
  }

  /** For Connection: it is gone. A waiter gets a new one. */
  discard(connection: Connection): void {
    const { pool } = connection
    pool.open -= 1
    this.#open -= 1
    connection.client.destroy().catch(() => {})
    const waiter = pool.waiting[0]
    const fresh = waiter === undefined ? undefined : this.#openConnection(pool, waiter.resolution)
    if (waiter === undefined || fresh === undefined) return
    pool.waiting.shift()
    this.#post(fresh, waiter.request, waiter.handler)
  }

  /**
   * Hands requests to their connections once per loop turn, in the check phase. undici then writes to a reused
   * connection one turn later, so that a whole poll phase lies between: an answer that nobody asked for is read
   * before the request is written, and closes the connection instead of answering the next request.
   */
  #post(connection: Connection, request: UpstreamRequest, handler: UpstreamHandler): void {
    if (this.#outbox.push({ connection, request, handler }) === 1) setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    const posted = this.#outbox
    this.#outbox = []
    for (const { connection, request, handler } of posted) connection.dispatch(request, handler)
  }

  #poolOf(origin: Origin): Pool {
    let pool = this.#pools.get(origin.key)
    if (pool === undefined) {
      pool = { origin, idle: [], waiting: [], open: 0 }
      this.#pools.set(origin.key, pool)
    }
    return pool
  }

  #takeIdle(pool: Pool, resolution: Resolution): Connection | undefined {
    for (;;) {
      const connection = pool.idle.pop()
      if (connection === undefined || connection.serves(resolution)) return connection?.take()
      this.discard(connection)
    }
  }

  #openConnection(pool: Pool, resolution: Resolution): Connection | undefined {
    if (pool.open >= this.#settings.perOrigin) return undefined
    if (this.#open >= this.#settings.total && !this.#closeOneIdle()) return undefined
    pool.open += 1
    this.#open += 1
    return this.#create(pool, resolution, false)
  }

  #closeOneIdle(): boolean {
    for (const pool of this.#pools.values()) {
      const connection = pool.idle.shift()
      if (connection === undefined) continue
      this.discard(connection)
      return true
    }
    return false
  }

  #create(pool: Pool, resolution: Resolution, alone: boolean): Connection {
    const { headersTimeoutMs, idleTimeoutMs } = this.#settings
    const client = new Client(pool.origin.key, {
      allowH2: false,
      headersTimeout: headersTimeoutMs,
      bodyTimeout: idleTimeoutMs,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: maxIdleMs,
      maxHeaderSize,
      connect: (options, callback) => {
        const onAddress = (address: string) => {
          connection.address = address
        }
        this.#dial(connection.resolution.addresses, { options, callback, onAddress })
      },
    })
    const connection = new Connection({ owner: this, pool, resolution, client, alone })
    return connection
  }

  #sweep(): void {
    const oldest = this.#clock.steady() - this.#settings.waitMs
    for (const [key, pool] of this.#pools) {
      while ((pool.waiting[0]?.since ?? Number.POSITIVE_INFINITY) < oldest) {
        pool.waiting.shift()?.handler.onResponseError(null, new UpstreamBusyError())
      }
      if (pool.open === 0 && pool.waiting.length === 0) this.#pools.delete(key)
    }
  }
}

interface ConnectionParts {
  readonly owner: Connections
  readonly pool: Pool
  readonly resolution: Resolution
  readonly client: Client
  /** Used for one request and then closed. */
  readonly alone: boolean
}

/** One connection to one origin. Carries one request at a time. */
export class Connection {
  readonly pool: Pool
  readonly client: Client
  resolution: Resolution
  /** Address connected to; undefined before the first connect. */
  address: string | undefined = undefined
  readonly #owner: Connections
  readonly #alone: boolean
  #busy = true

  constructor({ owner, pool, resolution, client, alone }: ConnectionParts) {
    this.#owner = owner
    this.pool = pool
    this.resolution = resolution
    this.client = client
    this.#alone = alone
    client.on('disconnect', () => this.#disconnected())
  }

  /** Taken from the stack: no longer idle. */
  take(): this {
    this.#busy = true
    return this
  }

  /** Whether the address of this connection is still one of the name's. */
  serves(resolution: Resolution): boolean {
    if (resolution === this.resolution) return true
    if (this.address === undefined || !resolution.addresses.includes(this.address)) return false
    this.resolution = resolution
    return true
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler): void {
    handler.connection = this
    this.client.dispatch(request as Dispatcher.DispatchOptions, handler)
  }

  /** Gives the connection back when the exchange is over; `sound` when the answer came whole. */
  release(sound: boolean): void {
    this.#busy = false
    if (sound && !this.#alone) this.#owner.giveBack(this)
    else this.#owner.discard(this)
  }

  #disconnected(): void {
    if (this.#busy) return
    const index = this.pool.idle.lastIndexOf(this)
    if (index < 0) return
    this.pool.idle.splice(index, 1)
    this.#owner.discard(this)
  }
}
