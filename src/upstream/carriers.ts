import type { Socket } from 'node:net'
import type { Origin } from '../base/origin.ts'
import type { Carrier } from './connection.ts'
import type { ConnectionSettings } from './connection-settings.ts'
import { type Connect, Http1Connection, type Http1Settings } from './http1.ts'
import { authorityOf } from './http1-head.ts'
import { Negotiated } from './negotiated.ts'

export interface CarrierParts {
  readonly origin: Origin
  /** Offer HTTP/2. */
  readonly http2: boolean
  readonly settings: Http1Settings
  readonly openHttp1: ConnectionSettings['openHttp1']
}

/** What carries requests over a connection that is opened by `connect`. */
export function createCarrier(parts: CarrierParts, connect: Connect): Carrier {
  const { origin, settings } = parts
  if (!parts.http2) return createHttp1(parts, connect)
  const http1 = (socket: Socket): Carrier => createHttp1(parts, (_, done) => done(null, socket))
  return new Negotiated({ origin, settings, connect, http1 })
}

function createHttp1({ origin, settings, openHttp1 }: CarrierParts, connect: Connect): Carrier {
  const authority = authorityOf(origin)
  return openHttp1?.(authority, settings, connect) ?? new Http1Connection(authority, settings, connect)
}
