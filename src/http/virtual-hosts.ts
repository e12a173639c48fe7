import { normaliseHost } from '../base/host.ts'
import { DirectMappedCache } from '../base/memo.ts'
import type { Origin } from '../base/origin.ts'
import { parseTarget } from '../base/target.ts'
import { type Addressing, byUrl, type Linked } from './addressing.ts'

export interface VirtualHosts {
  /** @param field the `Host` field; its port, letter case and trailing dot do not count */
  find(field: string): Addressing | undefined
}

/** How clients reach the gateway. */
export interface PublicNames {
  /** Origin of System:PublicUrl. */
  readonly publicUrl: string | undefined
  readonly scheme: 'http' | 'https'
}

interface HostSetting {
  readonly Host: string | undefined
  readonly Upstream: string | undefined
}

/** The cached result for a `Host` field, also when it names no virtual host: every request looks it up. */
interface HostMatch {
  readonly virtual: VirtualHost | undefined
}

const maxKnownLength = 256

/** The virtual hosts of a configuration; undefined when there are none. */
export function createVirtualHosts(settings: readonly HostSetting[], names: PublicNames): VirtualHosts | undefined {
  if (settings.length === 0) return undefined
  const byHost = new Map<string, VirtualHost>()
  // The first one of an upstream.
  const byUpstream = new Map<string, VirtualHost>()
  const cache = new DirectMappedCache<HostMatch>(256)
  for (const { Host = '', Upstream = '' } of settings) {
    const host = hostOf(Host)
    const upstream = upstreamOf(Upstream)
    if (host === undefined || upstream === undefined) throw new TypeError(`${Host} is not a virtual host`)
    const made = new VirtualHost(host, upstream, { ...names, of: key => byUpstream.get(key) })
    byHost.set(host, made)
    if (!byUpstream.has(upstream.key)) byUpstream.set(upstream.key, made)
  }
  const learn = (field: string): HostMatch => {
    const found = { virtual: byHost.get(hostOf(field) ?? '') }
    if (field.length <= maxKnownLength) cache.set(field, found)
    return found
  }
  return { find: field => (cache.get(field) ?? learn(field)).virtual }
}

interface Siblings extends PublicNames {
  /** The virtual host of an upstream. */
  readonly of: (originKey: string) => VirtualHost | undefined
}

/** A host name of the gateway that stands for one upstream. All of its paths are the upstream's. */
class VirtualHost implements Addressing {
  readonly road = undefined
  readonly tunnel = undefined
  readonly sharesOrigin = false
  readonly dropsCredentials = false
  readonly standsFor: Origin
  readonly #host: string
  readonly #siblings: Siblings

  /** @param host in its normal form, without a port */
  constructor(host: string, upstream: Origin, siblings: Siblings) {
    this.#host = host
    this.standsFor = upstream
    this.#siblings = siblings
  }

  linkTo(url: URL, from: Linked): string | undefined {
    const path = pathOf(url)
    // A path of two slashes would be read as a host.
    if (url.origin === this.standsFor.key && !path.startsWith('//')) return path
    const { publicUrl } = this.#siblings
    return this.hostLinkTo(url, from) ?? (publicUrl && publicUrl + byUrl.plain.linkTo(url, from))
  }

  hostLinkTo(url: URL, { fields }: Linked): string | undefined {
    const host = url.origin === this.standsFor.key ? this : this.#siblings.of(url.origin)
    // Links have the port that the client has called.
    return host && `${this.#siblings.scheme}://${host.#host}${portOf(fields.host)}${pathOf(url)}`
  }

  cookiePath(): undefined {
    return undefined
  }

  ownLink(path: string): string | undefined {
    const { publicUrl } = this.#siblings
    return publicUrl && publicUrl + path
  }
}

const pathOf = ({ pathname, search, hash }: URL): string => pathname + search + hash

/** The host of a `Host` field in its normal form; undefined when it has none. */
function hostOf(field: string): string | undefined {
  const host = field.replace(/:[0-9]*$/, '')
  return host === '' ? undefined : normaliseHost(host)
}

/** The port of a `Host` field with its colon; empty without one. */
const portOf = (field: string): string => /:[0-9]+$/.exec(field)?.[0] ?? ''

/** An upstream as it is configured: scheme, host and port. */
function upstreamOf(text: string): Origin | undefined {
  const target = parseTarget(text)
  return typeof target === 'string' || target.requestTarget !== '/' ? undefined : target.origin
}
