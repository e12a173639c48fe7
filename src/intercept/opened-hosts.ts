/** Which hosts of CONNECT the gateway intercepts. */
import { matchesHost, parsePlacePattern } from '../base/host.ts'
import type { Origin } from '../base/origin.ts'

/** Settings of `ForwardProxy`. */
export interface OpenedHostsSettings {
  readonly Https: 'Intercept' | 'Tunnel'
  readonly TunnelHosts: readonly string[]
  readonly InterceptHosts: readonly string[]
}

export interface OpenedHosts {
  /** Whether it opens the TLS of this host, and reads the requests. */
  opens(origin: Origin): boolean
  /** Whether a tunnel that it does not open may carry another protocol than TLS. */
  mayCarryAny(origin: Origin): boolean
}

const tlsPort = 443

export function createOpenedHosts({ Https, TunnelHosts, InterceptHosts }: OpenedHostsSettings): OpenedHosts {
  const isTunnelled = matcherOf(TunnelHosts)
  const isIntercepted = matcherOf(InterceptHosts)
  return {
    opens: origin => (Https === 'Intercept' ? !isTunnelled(origin) : isIntercepted(origin)),
    mayCarryAny: origin => origin.port !== tlsPort && isTunnelled(origin),
  }
}

function matcherOf(texts: readonly string[]): (origin: Origin) => boolean {
  const patterns = texts.map(parsePlacePattern)
  return ({ host, port }) =>
    patterns.some(pattern => (pattern.port ?? tlsPort) === port && matchesHost(pattern.host, host))
}
