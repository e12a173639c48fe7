/** Which hosts of CONNECT the gateway intercepts. */
import { matchesAnyHost, matchesHost, parseHostPatterns, parsePlacePattern } from '../base/host.ts'
import type { Origin } from '../base/origin.ts'
import type { Config } from '../config/schema.ts'

export type OpenedHostsSettings = Pick<Config['ForwardProxy'], 'Https' | 'TunnelHosts' | 'InterceptHosts'> &
  Pick<Config['Proxy'], 'Http2Hosts'>

export type OpenedHosts = ReturnType<typeof createOpenedHosts>

const tlsPort = 443

export function createOpenedHosts(settings: OpenedHostsSettings) {
  const { Https, TunnelHosts, InterceptHosts, Http2Hosts } = settings
  const isTunnelled = matcherOf(TunnelHosts)
  const isIntercepted = matcherOf(InterceptHosts)
  const withHttp2 = parseHostPatterns(Http2Hosts)
  return {
    /** Whether it opens the TLS of this host, and reads the requests. */
    opens: (origin: Origin) => (Https === 'Intercept' ? !isTunnelled(origin) : isIntercepted(origin)),
    /** Whether a tunnel that it does not open may carry another protocol than TLS. */
    mayCarryAny: (origin: Origin) => origin.port !== tlsPort && isTunnelled(origin),
    /** Whether it offers HTTP/2 in the TLS of this host. @param host a name in lower case, or an address without brackets */
    speaksHttp2: (host: string) => matchesAnyHost(withHttp2, host),
  }
}

function matcherOf(texts: readonly string[]): (origin: Origin) => boolean {
  const patterns = texts.map(parsePlacePattern)
  return ({ host, port }) =>
    patterns.some(pattern => (pattern.port ?? tlsPort) === port && matchesHost(pattern.host, host))
}
