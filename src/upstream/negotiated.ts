import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { Origin } from '../base/origin.ts'
import type { Carrier, CarrierSettings } from './connection.ts'
import type { UpstreamHandler, UpstreamRequest } from './handler.ts'
import type { Connect } from './http1.ts'
import { Http2Session } from './http2.ts'

export interface NegotiatedParts {
  readonly origin: Origin
  readonly settings: CarrierSettings
  /** Connects, and offers HTTP/2. */
  readonly connect: Connect
  /** What carries requests in HTTP/1.1 over a connection that is there. */
  readonly http1: (socket: Socket) => Carrier
}

/** The upstream has chosen it. */
export function isHttp2(socket: Socket): boolean {
  return 'alpnProtocol' in socket && socket.alpnProtocol === 'h2'
}

/** Nobody wants the connection any more. */
class DestroyedError extends Error {
  override readonly name = 'DestroyedError'
}

/**
 * Connects at its first request, and goes on in the protocol that the upstream has chosen. It is given no second
 * request before it has said with `drain` that it takes more, or the first is over.
 */
export class Negotiated extends EventEmitter implements Carrier {
  readonly #parts: NegotiatedParts
  #carrier: Carrier | undefined
  #destroyed = false

  constructor(parts: NegotiatedParts) {
    super()
    this.#parts = parts
  }

  get destroyed(): boolean {
    return this.#destroyed || this.#carrier?.destroyed === true
  }

  dispatch(request: UpstreamRequest, handler: UpstreamHandler): boolean {
    if (this.#carrier !== undefined) return this.#carrier.dispatch(request, handler)
    this.#parts.connect(undefined, (error, socket) => {
      if (this.#destroyed) socket?.destroy()
      if (socket === undefined || this.#destroyed) handler.onResponseError(error ?? new DestroyedError())
      else if (this.#begin(socket).dispatch(request, handler)) this.emit('drain')
    })
    return false
  }

  destroy(): void {
    this.#destroyed = true
    this.#carrier?.destroy()
  }

  #begin(socket: Socket): Carrier {
    const { origin, settings, http1 } = this.#parts
    this.#carrier = isHttp2(socket) ? new Http2Session(socket, origin, settings) : http1(socket)
    this.#carrier.on('disconnect', () => this.emit('disconnect'))
    this.#carrier.on('drain', () => this.emit('drain'))
    this.#carrier.on('dropped', () => this.emit('dropped'))
    return this.#carrier
  }
}
