import type { Socket } from 'node:net'
import type { Origin } from '../base/origin.ts'
import type { Carrier, CarrierEvents, OpenSocket } from './connection.ts'
import { type ConnectionLease, failUnsent, givenUp, type UpstreamHandler, type UpstreamRequest } from './handler.ts'
import { Http1Connection } from './http1.ts'
import { authorityOf } from './http1-head.ts'
import { Http2Session } from './http2.ts'
import type { CarrierSettings, ConnectionSettings } from './settings.ts'

export interface CarrierParts {
  readonly origin: Origin
  /** Offer HTTP/2. */
  readonly http2: boolean
  readonly settings: CarrierSettings
  readonly openHttp1: ConnectionSettings['openHttp1']
  readonly events: CarrierEvents
}

/** Carries requests over a connection that is opened by `connect`. */
export function createCarrier(parts: CarrierParts, connect: OpenSocket): Carrier {
  return parts.http2 ? new Negotiated(parts, connect) : createHttp1(parts, connect)
}

function createHttp1({ origin, settings, openHttp1, events }: CarrierParts, connect: OpenSocket): Carrier {
  const authority = authorityOf(origin)
  return openHttp1?.(authority, settings, connect, events) ?? new Http1Connection(authority, settings, connect, events)
}

/** The upstream has chosen it. */
export function isHttp2(socket: Socket): boolean {
  return 'alpnProtocol' in socket && socket.alpnProtocol === 'h2'
}

/**
 * Connects at its first request, and goes on in the protocol that the upstream has chosen. It is given no second
 * request before `onDrain`, or the end of the first.
 */
class Negotiated implements Carrier {
  readonly #parts: CarrierParts
  readonly #connect: OpenSocket
  #carrier: Carrier | undefined
  #destroyed = false

  constructor(parts: CarrierParts, connect: OpenSocket) {
    this.#parts = parts
    this.#connect = connect
  }

  get destroyed(): boolean {
    return this.#destroyed || this.#carrier?.destroyed === true
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler, lease: ConnectionLease): boolean {
    if (this.#carrier !== undefined) return this.#carrier.dispatch(request, handler, lease)
    this.#connect(undefined, (error, socket) => {
      if (this.#destroyed) socket?.destroy()
      if (socket === undefined || this.#destroyed) failUnsent(handler, lease, error ?? givenUp())
      else if (this.#begin(socket).dispatch(request, handler, lease)) this.#parts.events.onDrain()
    })
    return false
  }

  destroy(): void {
    this.#destroyed = true
    this.#carrier?.destroy()
  }

  #begin(socket: Socket): Carrier {
    const { origin, settings, events } = this.#parts
    this.#carrier = isHttp2(socket)
      ? new Http2Session(socket, origin, settings, events)
      : createHttp1(this.#parts, (_, done) => done(null, socket))
    return this.#carrier
  }
}
