/** Time limits and sizes of the connections to upstreams. */
import type { HostPattern } from '../base/host.ts'
import { fieldValues } from '../http/headers.ts'
import type { Carrier, CarrierEvents, OpenSocket } from './connection.ts'
import type { DialSettings } from './dial.ts'

/** How long an upstream may be silent. */
export interface SilenceLimits {
  /** Before the head of its answer. */
  readonly headersTimeoutMs: number
  /** In the body of it. */
  readonly idleTimeoutMs: number
  /** The same for `text/event-stream`: a model that thinks sends nothing for minutes. */
  readonly eventStreamIdleMs: number
}

export interface CarrierSettings extends SilenceLimits {
  /** A connection that carries nothing is closed after this. */
  readonly keepAliveMs: number
  /** Longest time that an upstream may ask for instead, over HTTP/1.1. */
  readonly maxKeepAliveMs: number
  /** Largest header section of an answer, and of its trailers, bytes. */
  readonly maxHeaderSize: number
}

/** An upstream's Keep-Alive hint may ask for `maxKeepAliveMs` at most. */
export const carrierSettings = ({
  headersTimeoutMs,
  idleTimeoutMs,
  eventStreamIdleMs,
}: SilenceLimits): CarrierSettings => ({
  ...{ headersTimeoutMs, idleTimeoutMs, eventStreamIdleMs },
  ...{ maxHeaderSize: 65_536, keepAliveMs: 4_000, maxKeepAliveMs: 60_000 },
})

export interface ConnectionSettings extends DialSettings, SilenceLimits {
  /** Connections to one origin, and to all together. */
  readonly perOrigin: number
  readonly total: number
  /** Requests that may wait for a connection to one origin, and how long, milliseconds. */
  readonly maxWaiting: number
  readonly waitMs: number
  readonly http2Hosts: readonly HostPattern[]
  /** Speaks HTTP/1.1 instead of the built-in client. */
  readonly openHttp1?: OpenHttp1 | undefined
  /** Called for each new connection with the time that it took, milliseconds. */
  readonly onConnected?: ((ms: number) => void) | undefined
}

/** Makes a connection that connects at its first request. */
export type OpenHttp1 = (
  authority: string,
  settings: CarrierSettings,
  connect: OpenSocket,
  events: CarrierEvents,
) => Carrier

/** @param fields of the answer, flat */
export const idleLimitOf = (fields: readonly string[], limits: SilenceLimits): number =>
  isEventStream(fields) ? limits.eventStreamIdleMs : limits.idleTimeoutMs

/** @param fields of the answer, flat */
export function isEventStream(fields: readonly string[]): boolean {
  const [type = ''] = fieldValues(fields, 'content-type')
  return /^[ \t]*text\/event-stream[ \t]*(?:;|$)/i.test(type)
}
