/** Connections to origins: one connection, the pool of those to one origin, and the requests that are handed to them. */
/** The connections to one origin: which of them serves which request. */
import type { OnReadOpts, Socket } from 'node:net'
import type { Origin } from '../base/origin.ts'
import type { ConnectionLease, UpstreamHandler, UpstreamRequest } from './handler.ts'
import type { Resolution } from './resolve.ts'
import { type Sending, type Waiter, WaitingQueue } from './waiting-queue.ts'

export interface ConnectionPool {
  readonly origin: Origin
  /** HTTP/2 is spoken when the upstream offers it. */
  readonly http2: boolean
  /** Connections of one agent: the rest is for the others. */
  readonly maxEach: number
  /** Last in, first out: the warmest connection is used again, the others may age and close. */
  readonly free: Connection[]
  readonly waiting: WaitingQueue
  /** All connections, free or not. */
  readonly all: Set<Connection>
  open: number
  /** Connections that may soon have capacity for many requests. */
  opening: number
  /** The last connection that was tried speaks HTTP/2, or none was tried yet. */
  multiplexes: boolean
}

export interface ConnectionOwner {
  /** The connection has capacity for a request. */
  giveBack(connection: Connection): void
  /** It accepts no more requests; those under way go on. Called once, before `discard`, if there are any. */
  retired(connection: Connection): void
  /** It is closed or unusable, and carries nothing. Called once. */
  discard(connection: Connection): void
  /** The upstream closed it while it was idle. Called before `discard`. */
  dropped(connection: Connection): void
}

/** A connection that speaks HTTP/1.1 or HTTP/2. */
export interface Carrier {
  /** Reports any failure to the handler, after it has released the lease. False: it accepts no more until `onDrain`. */
  dispatch(request: UpstreamRequest, handler: UpstreamHandler, lease: ConnectionLease): boolean
  /** It accepts no more requests. */
  readonly destroyed: boolean
  destroy(): void
}

export interface CarrierEvents {
  /** It accepts requests again. */
  onDrain(): void
  /** It accepts no more until `onDrain`: the upstream has changed its mind. */
  onFull(): void
  /** The upstream closes it while it carries nothing. `onDisconnect` follows. */
  onDropped(): void
  /** It accepts no more requests. */
  onDisconnect(): void
}

export type OnSocket = (error: Error | null, socket?: Socket) => void

/** Gives a connected socket that hands what it reads to `onread`, or, without one, as a stream does. */
export type OpenSocket = (onread: OnReadOpts | undefined, done: OnSocket) => void

export interface ConnectionParts {
  readonly owner: ConnectionOwner
  readonly pool: ConnectionPool
  readonly resolution: Resolution
  readonly open: (events: CarrierEvents) => Carrier
  /** Used for one request and then closed. */
  readonly alone: boolean
}

/** Streams of one HTTP/2 connection at a time; the upstream may want fewer. */
export const maxStreams = 100

/** One connection to one origin. Carries one request at a time, over HTTP/2 as many as the upstream allows. */
export class Connection implements ConnectionLease, CarrierEvents {
  readonly pool: ConnectionPool
  readonly carrier: Carrier
  resolution: Resolution
  /** Address connected to; undefined before the first connect. */
  address: string | undefined = undefined
  /** When its last request was over, steady milliseconds. */
  idleSince = 0
  agentId = ''
  /** It speaks HTTP/2. Known once it is connected. */
  multiplexed = false
  opening = false
  /** It is in `free` of its pool. */
  listed = false
  readonly #owner: ConnectionOwner
  readonly #alone: boolean
  /** Requests in flight. */
  #underway = 1
  /** It accepts no more until `onDrain`. */
  #full = false
  #retired = false
  #gone = false

  constructor({ owner, pool, resolution, open, alone }: ConnectionParts) {
    this.#owner = owner
    this.pool = pool
    this.resolution = resolution
    this.#alone = alone
    this.carrier = open(this)
  }

  get idle(): boolean {
    return this.#underway === 0
  }

  /** It serves one agent, and no other can use it meanwhile. */
  get takesSlot(): boolean {
    return this.#underway > 0 && !this.multiplexed
  }

  get hasCapacity(): boolean {
    return this.#underway === 0 || (this.multiplexed && !this.#full && this.#underway < maxStreams)
  }

  /** Reserves a place for one more request. */
  take(): this {
    this.#underway += 1
    return this
  }

  /** Whether the address of this connection is still one of the name's. */
  serves(resolution: Resolution): boolean {
    if (resolution === this.resolution) return true
    if (this.address === undefined || !resolution.addresses.includes(this.address)) return false
    this.resolution = resolution
    return true
  }

  /**
   * Sends a request for which capacity was reserved. False: the capacity is gone, and the request needs another connection.
   */
  dispatch(request: UpstreamRequest, handler: UpstreamHandler): boolean {
    if (this.#retired || this.carrier.destroyed || (this.multiplexed && this.#full)) {
      this.#underway -= 1
      if (this.#retired) this.retire()
      return false
    }
    this.#full = !this.carrier.dispatch(request, handler, this)
    if (this.#full && this.multiplexed) this.#unlist()
    return true
  }

  /**
   * Gives its place back when the exchange is over; `sound` when the answer came whole. Of an HTTP/2 connection only
   * the stream is broken by an answer that did not.
   */
  release(sound: boolean): void {
    this.#underway -= 1
    if ((sound || this.multiplexed) && !this.#alone && !this.#retired) this.#owner.giveBack(this)
    else this.retire()
  }

  /** Accepts no further requests, and closes when those in flight are over. */
  retire(): void {
    if (this.#gone) return
    const isFirst = !this.#retired
    this.#retired = true
    this.#unlist()
    if (this.#underway > 0) {
      if (isFirst) this.#owner.retired(this)
      return
    }
    this.#gone = true
    this.#owner.discard(this)
  }

  onDisconnect(): void {
    this.retire()
  }

  onDropped(): void {
    this.#owner.dropped(this)
  }

  onFull(): void {
    this.#full = true
    this.#unlist()
  }

  onDrain(): void {
    this.#full = false
    if (this.multiplexed && this.hasCapacity && !this.#retired) this.#owner.giveBack(this)
  }

  #unlist(): void {
    if (!this.listed) return
    this.listed = false
    const { free } = this.pool
    free.splice(free.lastIndexOf(this), 1)
  }
}

/** The pool of the requests that authenticate their connections, where others go over HTTP/2. */
export const ownKeyOf = ({ key }: Origin): string => `${key} HTTP/1.1`

/** @param maxEach connections of one agent */
export function createPool(origin: Origin, http2: boolean, maxEach: number): ConnectionPool {
  const waiting = new WaitingQueue()
  return { origin, http2, maxEach, free: [], waiting, all: new Set(), open: 0, opening: 0, multiplexes: http2 }
}

/** The waiting request that is served next, of an agent that may have one more connection. */
export function nextWaiter({ waiting, all, maxEach }: ConnectionPool): Waiter | undefined {
  if (waiting.length === 0) return undefined
  const used = new Map<string, number>()
  for (const { takesSlot, agentId } of all) if (takesSlot) used.set(agentId, (used.get(agentId) ?? 0) + 1)
  return waiting.next(used, maxEach)
}

/**
 * Whether the agent uses as many connections as one agent may. What it does not get serves others at once, however long
 * its own requests take. HTTP/2 connections are shared and do not count.
 */
export function hasItsShare({ all, free, maxEach }: ConnectionPool, agentId = ''): boolean {
  // So few are in use that nobody can have that many.
  if (all.size - free.length < maxEach) return false
  let used = 0
  for (const connection of all) if (connection.takesSlot && connection.agentId === agentId) used += 1
  return used >= maxEach
}

/** Whether a request may wait. One agent has half of the queue at most. */
export function mayWait({ waiting }: ConnectionPool, request: UpstreamRequest, max: number): boolean {
  return waiting.length < max && waiting.of(request) < Math.ceil(max / 2)
}

/** Takes a free connection to the checked addresses. Free connections to other addresses are retired on the way. */
export function takeFree({ free }: ConnectionPool, resolution: Resolution): Connection | undefined {
  for (;;) {
    const connection = free.at(-1)
    if (connection === undefined) return undefined
    if (!connection.serves(resolution)) {
      connection.retire()
      continue
    }
    connection.take()
    if (!connection.hasCapacity) {
      free.pop()
      connection.listed = false
    }
    return connection
  }
}

/** Closes an idle connection, if there is one. */
export function retireIdle({ free }: ConnectionPool): boolean {
  const connection = free.find(({ idle }) => idle)
  connection?.retire()
  return connection !== undefined
}

/** A request that has got its connection. */
export interface Posted extends Sending {
  readonly connection: Connection
}

/**
 * Hands requests to their connections together, in the check phase. All bytes that had arrived when this turn of the event
 * loop began are parsed by then, so that an unsolicited answer closes its connection instead of answering the next
 * request. (One more turn would cost 6 % of a request.)
 */
export class Outbox {
  readonly #refused: (posted: Posted) => void
  #posted: Posted[] = []

  /** @param refused called for a request whose connection has no more capacity */
  constructor(refused: (posted: Posted) => void) {
    this.#refused = refused
  }

  post(posted: Posted): void {
    posted.connection.agentId = posted.request.agentId ?? ''
    if (this.#posted.push(posted) === 1) setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    const all = this.#posted
    this.#posted = []
    for (const posted of all) if (!posted.connection.dispatch(posted.request, posted.handler)) this.#refused(posted)
  }
}
