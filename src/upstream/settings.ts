/** Time limits and sizes of the connections to upstreams. */
import type { HostPattern } from '../base/host.ts'
import type { Carrier, Connect } from './connection.ts'
import type { DialSettings } from './dial.ts'

/** How long the body of an answer may stand still. */
export interface IdleLimits {
  readonly idleTimeoutMs: number
  /** The same for `text/event-stream`: a model that thinks sends nothing for minutes. */
  readonly eventStreamIdleMs: number
}

/** How long an upstream may be silent. */
export interface SilenceLimits extends IdleLimits {
  /** Before the head of its answer. */
  readonly headersTimeoutMs: number
}

export interface CarrierSettings extends SilenceLimits {
  /** A connection that carries nothing is closed after this. */
  readonly keepAliveMs: number
  /** Largest header section of an answer, and of its trailers, bytes. */
  readonly maxHeaderSize: number
}

export interface Http1Settings extends CarrierSettings {
  /** Longest time that an upstream may ask for instead of `keepAliveMs`. */
  readonly maxKeepAliveMs: number
}

export interface ConnectionSettings extends DialSettings, SilenceLimits {
  /** Connections to one origin, and to all together. */
  readonly perOrigin: number
  readonly total: number
  /** Requests that may wait for a connection to one origin, and how long, milliseconds. */
  readonly maxWaiting: number
  readonly waitMs: number
  /** Patterns of the hosts that may be spoken to in HTTP/2. */
  readonly http2Hosts: readonly HostPattern[]
  /** Speaks HTTP/1.1 instead of the built-in client. */
  readonly openHttp1?: OpenHttp1 | undefined
}

/** Makes a connection that connects at its first request. */
export type OpenHttp1 = (authority: string, settings: Http1Settings, connect: Connect) => Carrier

/** @param fields of the answer, flat */
export function idleLimitOf(fields: readonly string[], limits: IdleLimits): number {
  return isEventStream(fields) ? limits.eventStreamIdleMs : limits.idleTimeoutMs
}

function isEventStream(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]?.toLowerCase() !== 'content-type') continue
    return /^[ \t]*text\/event-stream[ \t]*(?:;|$)/i.test(fields[i + 1]!)
  }
  return false
}
