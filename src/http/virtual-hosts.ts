import { normaliseHost } from '../base/host.ts'
import { Near } from '../base/near.ts'
import type { Origin } from '../base/origin.ts'
import { parseTarget } from '../base/target.ts'

/** A host name of the gateway's own under which one upstream is called. */
export interface VirtualHost {
  /** In its normal form, without a port. */
  readonly host: string
  readonly upstream: Origin
}

export interface VirtualHosts {
  /** @param field the `Host` field; its port, letter case and trailing dot do not count */
  find(field: string): VirtualHost | undefined
  /** The first virtual host of an upstream. */
  of(originKey: string): VirtualHost | undefined
}

/**
 * How a client names the upstream of a request: by `/proxy/https://host`, by `/proxy/https/host`, or by a virtual host.
 * Links in answers are written in the same form.
 */
export type Addressing = 'url' | 'path' | VirtualHost

/** Settings for the links in answers. */
export interface Links {
  /** Proxy:Redirects and Proxy:Cookies. */
  readonly redirects: 'Rewrite' | 'Pass'
  readonly cookies: 'Scope' | 'Pass'
  /** Origin of System:PublicUrl. */
  readonly publicUrl: string | undefined
  /** Scheme of the virtual hosts, as clients see it. */
  readonly scheme: 'http' | 'https'
  /** Undefined when there are none. */
  readonly hosts: VirtualHosts | undefined
}

/** One entry of `Hosts`. */
interface HostSetting {
  readonly Host: string | undefined
  readonly Upstream: string | undefined
}

/** The answer for a `Host` field, also when it names no virtual host: every request asks. */
interface Found {
  readonly virtual: VirtualHost | undefined
}

const maxKnownLength = 256

/** The virtual hosts of a configuration; undefined when there are none. */
export function createVirtualHosts(settings: readonly HostSetting[]): VirtualHosts | undefined {
  if (settings.length === 0) return undefined
  const byHost = new Map<string, VirtualHost>()
  const byUpstream = new Map<string, VirtualHost>()
  const near = new Near<Found>(256)
  for (const { Host = '', Upstream = '' } of settings) {
    const host = hostOf(Host)
    const upstream = upstreamOf(Upstream)
    if (host === undefined || upstream === undefined) throw new TypeError(`${Host} is not a virtual host`)
    const made = { host, upstream }
    byHost.set(host, made)
    if (!byUpstream.has(upstream.key)) byUpstream.set(upstream.key, made)
  }
  const learn = (field: string): Found => {
    const found = { virtual: byHost.get(hostOf(field) ?? '') }
    if (field.length <= maxKnownLength) near.set(field, found)
    return found
  }
  return {
    find: field => (near.get(field) ?? learn(field)).virtual,
    of: key => byUpstream.get(key),
  }
}

/** The host of a `Host` field in its normal form; undefined when it has none. */
function hostOf(field: string): string | undefined {
  const host = field.replace(/:[0-9]*$/, '')
  return host === '' ? undefined : normaliseHost(host)
}

/** The port of a `Host` field with its colon; empty without one. */
export const portOf = (field: string): string => /:[0-9]+$/.exec(field)?.[0] ?? ''

/** An upstream as it is configured: scheme, host and port. */
function upstreamOf(text: string): Origin | undefined {
  const target = parseTarget(text)
  return typeof target === 'string' || target.requestTarget !== '/' ? undefined : target.origin
}
