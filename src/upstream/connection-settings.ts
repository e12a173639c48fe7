import type { HostPattern } from '../base/host.ts'
import type { Carrier } from './connection.ts'
import type { DialSettings } from './dial.ts'
import type { Connect, Http1Settings } from './http1.ts'
import type { IdleLimits } from './idle-limit.ts'

export interface ConnectionSettings extends DialSettings, IdleLimits {
  /** Connections to one origin, and to all together. */
  readonly perOrigin: number
  readonly total: number
  /** Requests that may wait for a connection to one origin, and how long, milliseconds. */
  readonly maxWaiting: number
  readonly waitMs: number
  readonly headersTimeoutMs: number
  /** Patterns of the hosts that may be spoken to in HTTP/2. */
  readonly http2Hosts: readonly HostPattern[]
  /** What speaks HTTP/1.1 instead of the built-in client. */
  readonly openHttp1?: OpenHttp1 | undefined
}

/** Makes a connection that connects at its first request. */
export type OpenHttp1 = (authority: string, settings: Http1Settings, connect: Connect) => Carrier
