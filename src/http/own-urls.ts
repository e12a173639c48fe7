/** Addressing of clients of the forward proxy. */
import type { Duplex } from 'node:stream'
import type { Origin } from '../base/origin.ts'
import type { Addressing, Road, TunnelledBy } from './addressing.ts'

/** The client calls each upstream by the URL of the upstream, so links stay unchanged. */
export class OwnUrls implements Addressing {
  readonly road: Road
  readonly sharesOrigin = false
  readonly standsFor = undefined
  readonly dropsCredentials = false

  constructor(road: Road) {
    this.road = road
  }

  get tunnel(): TunnelledBy | undefined {
    return undefined
  }

  linkTo(url: URL): string {
    return url.href
  }

  hostLinkTo(): undefined {
    return undefined
  }

  cookiePath(): undefined {
    return undefined
  }

  ownLink(): undefined {
    return undefined
  }
}

interface TunnelTerms {
  /** That of its CONNECT. */
  readonly id: string
  readonly agentId: string
  readonly token: string
  /** Address of the client that sent it. */
  readonly clientIp: string
  /** What its CONNECT named. */
  readonly origin: Origin
}

/** A connection that a CONNECT has opened, and in which the gateway reads the requests. */
export class ConnectTunnel extends OwnUrls implements TunnelledBy {
  readonly id: string
  readonly agentId: string
  readonly token: string
  readonly clientIp: string
  readonly #origin: Origin
  #takesRate = false
  /** Known once the first byte has arrived. */
  scheme: 'http' | 'https' = 'https'
  /** Connection of the requests; undefined until the tunnel is open. */
  connection: { destroySoon(): void } | undefined = undefined
  /** Why it was closed before a request came, when the gateway knows. */
  failure: string | undefined = undefined

  constructor({ id, agentId, token, clientIp, origin }: TunnelTerms) {
    super('intercepted')
    this.id = id
    this.agentId = agentId
    this.token = token
    this.clientIp = clientIp
    this.#origin = origin
  }

  override get tunnel(): this {
    return this
  }

  /** In lower case; an address without brackets. */
  get host(): string {
    return this.#origin.address ?? this.#origin.host
  }

  /** The origin of its requests, as a URL has it. */
  get origin(): string {
    return `${this.scheme}://${this.authority}`
  }

  /** Without the usual port. */
  get authority(): string {
    const { host, port } = this.#origin
    return port === (this.scheme === 'http' ? 80 : 443) ? host : `${host}:${port}`
  }

  /** Whether a `Host` field names its authority. A client of HTTP/1.0 may send none. */
  isNamed(field: string): boolean {
    const lower = field.toLowerCase()
    const { host, port } = this.#origin
    return lower === this.authority || lower === `${host}:${port}` || lower === ''
  }

  /** No request has come through it. */
  get isUnused(): boolean {
    return !this.#takesRate
  }

  countsRequest(): boolean {
    const counts = this.#takesRate
    this.#takesRate = true
    return counts
  }
}

const tunnels = new WeakMap<Duplex, ConnectTunnel>()

export function setTunnel(connection: Duplex, tunnel: ConnectTunnel): void {
  tunnels.set(connection, tunnel)
}

/** The client of a tunnel; undefined when the connection is none. No proxy on the way sees the requests in it. */
export const tunnelClientIp = (connection: Duplex): string | undefined => tunnels.get(connection)?.clientIp

/** @throws Error when the connection is no tunnel */
export function tunnelOf(connection: Duplex): ConnectTunnel {
  const tunnel = tunnels.get(connection)
  if (tunnel === undefined) throw new Error('cannot happen: a connection without a tunnel')
  return tunnel
}
