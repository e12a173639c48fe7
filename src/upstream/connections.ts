import { matchesAnyHost } from '../base/host.ts'
import type { Origin } from '../base/origin.ts'
import type { Clock } from '../runtime/clock.ts'
import {
  Connection,
  type ConnectionOwner,
  type ConnectionPool,
  createPool,
  hasItsShare,
  mayWait,
  nextWaiter,
  type OpenSocket,
  Outbox,
  ownKeyOf,
  retireIdle,
  takeFree,
} from './connection.ts'
import { createDial, type Dial, withTimes } from './dial.ts'
import { UpstreamBusyError, type UpstreamHandler, type UpstreamRequest } from './handler.ts'
import { usesConnectionAuth } from './http1-head.ts'
import { KeepAlives } from './keep-alives.ts'
import { createCarrier, isHttp2 } from './negotiated.ts'
import type { Resolution } from './resolve.ts'
import { type CarrierSettings, type ConnectionSettings, carrierSettings } from './settings.ts'
import { refuseAll, type Waiter } from './waiting-queue.ts'

/**
 * Connections to upstreams: for each origin a stack of single ones, each pinned to the addresses that egress has
 * checked.
 */
export class Connections implements ConnectionOwner {
  readonly #settings: ConnectionSettings
  readonly #http: CarrierSettings
  readonly #clock: Clock
  readonly #pools = new Map<string, ConnectionPool>()
  readonly #dial: Dial
  readonly #keepAlives = new KeepAlives()
  readonly #sweeper: NodeJS.Timeout
  /** Pools whose requests wait because all connections together are too many; the one served last stands at the end. */
  readonly #starved = new Set<ConnectionPool>()
  readonly #outbox = new Outbox(({ connection, resolution, request, handler }) =>
    this.send(connection.pool.origin, resolution, request, handler),
  )
  #open = 0
  #closed = false

  constructor(settings: ConnectionSettings, clock: Clock) {
    this.#settings = settings
    this.#http = carrierSettings(settings)
    this.#clock = clock
    this.#dial = withTimes(createDial(settings), settings, clock)
    this.#sweeper = setInterval(() => this.#sweep(), 1_000).unref()
  }

  /** Open connections to all upstreams. */
  get size(): number {
    return this.#open
  }

  get waiting(): number {
    return [...this.#pools.values()].reduce((sum, { waiting }) => sum + waiting.length, 0)
  }

  /**
   * Sends a request over a free connection to the checked addresses, or lets it wait for one. Any failure reaches
   * the handler as `onResponseError`; a request that did not get as far as `onRequestStart` was not sent.
   */
  send(origin: Origin, resolution: Resolution, request: UpstreamRequest, handler: UpstreamHandler): void {
    const pool = this.#poolFor(origin, request)
    const connection = hasItsShare(pool, request.agentId) ? undefined : this.#take(pool, resolution, request)
    if (connection !== undefined) this.#outbox.post({ connection, resolution, request, handler })
    else if (mayWait(pool, request, this.#settings.maxWaiting)) {
      pool.waiting.push({ resolution, request, handler, since: this.#clock.steady() })
    } else handler.onResponseError(new UpstreamBusyError())
  }

  #take(pool: ConnectionPool, resolution: Resolution, { fresh }: UpstreamRequest): Connection | undefined {
    if (fresh === true) return this.#takeNew(pool, resolution)
    return takeFree(pool, resolution) ?? (this.#isComing(pool) ? undefined : this.#openConnection(pool, resolution))
  }

  /** In a full pool an idle connection is closed first. Over HTTP/2 one that is in use may serve as well. */
  #takeNew(pool: ConnectionPool, resolution: Resolution): Connection | undefined {
    if (pool.open >= this.#settings.perOrigin) retireIdle(pool)
    return this.#openConnection(pool, resolution) ?? (pool.multiplexes ? takeFree(pool, resolution) : undefined)
  }

  /** A place for a connection that is opened elsewhere. Returns what gives it back; undefined when there is none. */
  takePlace(): (() => void) | undefined {
    if (!this.#hasPlace()) return undefined
    this.#open += 1
    return () => {
      this.#open -= 1
      this.#wakeStarved()
    }
  }

  /** Sends over a connection of its own that nothing else has used or will use: for replays and WebSockets. */
  sendAlone(origin: Origin, resolution: Resolution, request: UpstreamRequest, handler: UpstreamHandler): void {
    if (request.upgrades === true && !this.#hasPlace()) handler.onResponseError(new UpstreamBusyError())
    else {
      const http2 = request.upgrades !== true && this.#offersHttp2(origin) && !usesConnectionAuth(request.fields)
      const pool = createPool(origin, http2, 1)
      pool.open = 1
      this.#open += 1
      this.#create(pool, resolution, request).dispatch(request, handler)
    }
  }

  /** Takes a request that still waits out of the queue. False when it is under way or done. */
  cancel(origin: Origin, handler: UpstreamHandler, request: Pick<UpstreamRequest, 'agentId'>): boolean {
    const pools = [this.#pools.get(origin.key), this.#pools.get(ownKeyOf(origin))]
    return pools.some(pool => pool?.waiting.remove(handler, request))
  }

  /** Closes idle connections now and the others when their requests end. Waiting requests are not sent. */
  close(): void {
    clearInterval(this.#sweeper)
    this.#closed = true
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    for (const pool of pools) refuseAll(pool.waiting.expire(Number.POSITIVE_INFINITY))
    for (const connection of pools.flatMap(pool => pool.free.slice())) connection.retire()
  }

  /** Serves the next waiting requests, or keeps the connection for later ones. */
  giveBack(connection: Connection): void {
    const { pool } = connection
    this.#endOpening(connection, connection.multiplexed)
    connection.idleSince = this.#clock.steady()
    if (this.#closed) {
      connection.retire()
      return
    }
    while (connection.hasCapacity) {
      const waiter = nextWaiter(pool)
      if (waiter === undefined) {
        if (!connection.listed) pool.free.push(connection)
        connection.listed = true
        this.#wakeStarved()
        return
      }
      const mayBreak = waiter.request.fresh === true && !connection.multiplexed
      if (mayBreak || !connection.serves(waiter.resolution)) {
        // The request wants a new connection, or the name has other addresses now. A new one takes this one's place.
        connection.retire()
        return
      }
      this.#serve(connection.take(), waiter)
    }
    if (pool.http2) this.#openForWaiting(pool)
  }

  /** Those that wait for a connection that is being opened wait for it no longer. */
  retired(connection: Connection): void {
    if (!connection.opening) return
    this.#endOpening(connection, false)
    this.#openForWaiting(connection.pool)
  }

  /** Opens a connection for a waiting request in its place. */
  discard(connection: Connection): void {
    const { pool } = connection
    pool.open -= 1
    pool.all.delete(connection)
    this.#open -= 1
    connection.carrier.destroy()
    this.#endOpening(connection, false)
    if (this.#starved.size === 0) this.#openForWaiting(pool)
    else {
      this.#starved.add(pool)
      this.#wakeStarved()
    }
  }

  dropped({ pool: { origin }, idleSince }: Connection): void {
    const now = this.#clock.steady()
    this.#keepAlives.note(origin.key, now - idleSince, now)
  }

  #openForWaiting(pool: ConnectionPool): void {
    while (this.#openForOne(pool));
  }

  /** Opens a connection for the next waiter. False: there is no waiter, or no more connections are allowed. */
  #openForOne(pool: ConnectionPool): boolean {
    const waiter = this.#isComing(pool) ? undefined : nextWaiter(pool)
    const fresh = waiter === undefined ? undefined : this.#openConnection(pool, waiter.resolution)
    if (waiter !== undefined && fresh !== undefined) this.#serve(fresh, waiter)
    return fresh !== undefined
  }

  /** Pools take turns with the connections that all together may have. */
  #wakeStarved(): void {
    for (const pool of this.#starved) {
      const isStarved = this.#isStarved(pool)
      if (isStarved && !this.#openForOne(pool)) return
      this.#starved.delete(pool)
      if (isStarved && pool.waiting.length > 0) this.#starved.add(pool)
    }
  }

  #isStarved(pool: ConnectionPool): boolean {
    return pool.open < this.#settings.perOrigin && !this.#isComing(pool) && nextWaiter(pool) !== undefined
  }

  #serve(connection: Connection, { resolution, request, handler }: Waiter): void {
    connection.pool.waiting.remove(handler, request)
    this.#outbox.post({ connection, resolution, request, handler })
  }

  /** A connection is being opened that may take all that waits: a burst of requests needs no burst of connections. */
  #isComing({ opening, multiplexes, waiting }: ConnectionPool): boolean {
    return opening > 0 && multiplexes && waiting.length < this.#settings.maxWaiting
  }

  /** The protocol of a connection is now known. */
  #endOpening(connection: Connection, multiplexes: boolean): void {
    if (!connection.opening) return
    connection.opening = false
    connection.pool.opening -= 1
    connection.pool.multiplexes = multiplexes
  }

  /** Requests that authenticate their connection must not share it: they go over HTTP/1.1. */
  #poolFor(origin: Origin, { fields }: UpstreamRequest): ConnectionPool {
    const pool = this.#pools.get(origin.key) ?? this.#addPool(origin.key, origin, this.#offersHttp2(origin))
    if (!pool.http2 || !usesConnectionAuth(fields)) return pool
    const key = ownKeyOf(origin)
    return this.#pools.get(key) ?? this.#addPool(key, origin, false)
  }

  #addPool(key: string, origin: Origin, http2: boolean): ConnectionPool {
    const pool = createPool(origin, http2, Math.max(1, Math.floor(this.#settings.perOrigin / 2)))
    this.#pools.set(key, pool)
    return pool
  }

  #offersHttp2({ scheme, host }: Origin): boolean {
    return scheme === 'https' && matchesAnyHost(this.#settings.http2Hosts, host)
  }

  #openConnection(pool: ConnectionPool, resolution: Resolution): Connection | undefined {
    if (pool.open >= this.#settings.perOrigin) return undefined
    if (!this.#hasPlace()) {
      this.#starved.add(pool)
      return undefined
    }
    pool.open += 1
    this.#open += 1
    const connection = this.#create(pool, resolution)
    pool.all.add(connection)
    connection.opening = pool.http2
    if (pool.http2) pool.opening += 1
    return connection
  }

  /** If need be, an idle connection is closed. Its place may go to another that waits. */
  #hasPlace(): boolean {
    if (this.#open >= this.#settings.total) [...this.#pools.values()].some(retireIdle)
    return this.#open < this.#settings.total
  }

  /** @param only the request, if the connection is for one request alone */
  #create(pool: ConnectionPool, resolution: Resolution, only?: UpstreamRequest): Connection {
    const { origin, http2 } = pool
    const withinMs = only?.connectWithinMs
    const connect: OpenSocket = (onread, done) => {
      this.#dial(connection.resolution.addresses, { origin, http2, onread, withinMs }, (error, socket, address) => {
        if (socket !== undefined) {
          connection.address = address
          connection.multiplexed = isHttp2(socket)
          if (!connection.multiplexed && connection.opening) {
            this.#endOpening(connection, false)
            this.#openForWaiting(pool)
          }
        }
        done(error, socket)
      })
    }
    // Undici has WebSockets of its own, which are no tunnels.
    const openHttp1 = only?.upgrades === true ? undefined : this.#settings.openHttp1
    const settings = this.#keepAlives.shorten(this.#http, origin.key, this.#clock.steady())
    const connection: Connection = new Connection({
      ...{ owner: this, pool, resolution, alone: only !== undefined },
      open: events => createCarrier({ origin, http2, settings, openHttp1, events }, connect),
    })
    return connection
  }

  #sweep(): void {
    const oldest = this.#clock.steady() - this.#settings.waitMs
    for (const [key, pool] of this.#pools) {
      refuseAll(pool.waiting.expire(oldest))
      if (pool.open === 0 && pool.waiting.length === 0) this.#pools.delete(key)
    }
  }
}
