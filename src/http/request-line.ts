import { DirectMappedCache } from '../base/memo.ts'
import { howToCall, type Refusal, refuse } from '../base/refusals.ts'
import { type Addressing, bareMark, byPath, byUrl, proxyPrefix } from './addressing.ts'
import type { VirtualHosts } from './virtual-hosts.ts'

/** The target of a request line: an upstream, as raw text, or a path of the gateway itself. */
export type RequestRoute =
  | {
      readonly kind: 'proxy'
      readonly rawTarget: string
      readonly addressing: Addressing
    }
  | { readonly kind: 'own'; readonly path: string }

/**
 * Reads the request-target (RFC 9112 section 3.2). Absolute-form is accepted when it names this host, as the RFC asks, and
 * never forwarded: an upstream is named after `/proxy/`, or by a virtual host.
 */
export function createTargetReader(hosts: VirtualHosts | undefined) {
  return {
    /** @param host the `Host` field */
    read(url: string, host: string): RequestRoute | Refusal {
      const path = url.charCodeAt(0) === 0x2f ? url : pathOfAbsoluteForm(url, host)
      if (path === undefined) return notOurs
      const virtual = hosts?.find(host)
      if (virtual?.standsFor !== undefined) {
        return { kind: 'proxy', rawTarget: virtual.standsFor.key + path, addressing: virtual }
      }
      return path.startsWith(proxyPrefix) ? routeBehind(path) : { kind: 'own', path }
    },
    use(next: VirtualHosts | undefined) {
      hosts = next
    },
  }
}

const notOurs = refuse(
  'invalid_request',
  `The request target must be a path, or a URL of the host in Host. ${howToCall}`,
)

const maxKnownLength = 512

/**
 * Remembers routes: agents call the same few URLs again and again. Their targets are then one string, which the next tables
 * find at once.
 */
export function remembering<Route extends RequestRoute | Refusal>(
  read: (url: string) => Route,
): (url: string) => Route {
  const routes = new DirectMappedCache<Route>(1_024)
  return url => {
    const known = routes.get(url)
    if (known !== undefined) return known
    const route = read(url)
    if (url.length <= maxKnownLength) routes.set(url, route)
    return route
  }
}

/** Path: begins with `/proxy/`. */
const routeBehind = remembering((path): RequestRoute => {
  const form = path.startsWith(bareMark, proxyPrefix.length) ? 'bare' : 'plain'
  const raw = path.slice(proxyPrefix.length + (form === 'bare' ? bareMark.length : 0))
  const slash = raw.indexOf('/')
  if ((slash === 4 || slash === 5) && schemes.has(raw.slice(0, slash))) {
    // pip encodes the colon of the port in paths that it resolves.
    const rest = raw.slice(slash + 1).replace(encodedPort, '$1:')
    return { kind: 'proxy', rawTarget: `${raw.slice(0, slash)}://${rest}`, addressing: byPath[form] }
  }
  return { kind: 'proxy', rawTarget: raw, addressing: byUrl[form] }
})

const withoutHosts = createTargetReader(undefined)

/** The same for an entrypoint without agents. */
export function readOwnTarget(url: string, host: string): RequestRoute | Refusal {
  const route = withoutHosts.read(url, host)
  return 'kind' in route && route.kind === 'proxy' ? notForAgents : route
}

const notForAgents = refuse(
  'not_found',
  'Requests for upstreams are not served here: this is the address for people. Agents call the other one.',
)

/** Schemes in `/proxy/https/host/path`, for clients that damage `://` in a path. */
const schemes: ReadonlySet<string> = new Set(['http', 'https'])
const encodedPort = /^([^/?%]+)%3A(?=\d+(?:[/?]|$))/i

function pathOfAbsoluteForm(url: string, host: string): string | undefined {
  const match = /^https?:\/\/([^/?#]*)(\/.*)?$/i.exec(url)
  if (match === null || host === '' || match[1]?.toLowerCase() !== host.toLowerCase()) return undefined
  return match[2] ?? '/'
}
