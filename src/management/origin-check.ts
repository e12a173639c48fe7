/** Which calls of the management API are for this gateway, and asked for by its own pages. */
import type { IncomingMessage } from 'node:http'
import { canonicalAddress, classifyAddress } from '../base/address.ts'
import { howToCall, type Refusal, refuse } from '../base/refusals.ts'
import type { ManagementParts } from './parts.ts'

interface Host {
  readonly hostname: string
  readonly port: string
}

/** A request line with the URL of another host: its client has the gateway as its HTTP_PROXY. */
const notProxied = refuse('not_found', `The URL is not one of this gateway. ${howToCall}`)

/** A request in HTTP/1.0 may leave `Host` out (RFC 9112 section 3.2), as health checks do. No browser does. */
const nameless = { hostname: '', port: '' }

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

type OriginCheckParts = Pick<ManagementParts, 'allowedHosts' | 'ownUrls'>

/** Gives `checkOrigin` of the guard. */
export function createOriginCheck(parts: OriginCheckParts): (req: IncomingMessage) => Refusal | undefined {
  const allowedHosts = new Set(parts.allowedHosts.map(host => host.toLowerCase()))
  const ownHosts = new Set(parts.ownUrls.flatMap(url => parseHost(url)?.hostname ?? []))

  return req => {
    const { host: named = '' } = req.headers
    const host = named === '' ? nameless : parseHost(`http://${named}`)
    if (host === undefined) return refuse('foreign_origin')
    if (allowedHosts.size > 0 && !allowedHosts.has(host.hostname)) {
      return refuse('foreign_origin', `The Host header does not belong to this gateway. ${howToCall}`)
    }
    const isForOther = allowedHosts.size === 0 && req.url?.startsWith('/') === false
    if (isForOther && !ownHosts.has(host.hostname) && !isReachedAs(host, req.socket)) return notProxied
    const { origin } = req.headers
    if (origin === undefined || readingMethods.has(req.method ?? '')) return undefined
    const from = parseHost(origin)
    // The scheme is not compared: TLS may end in front of the gateway.
    const isSameOrigin = from !== undefined && from.hostname === host.hostname && from.port === host.port
    return isSameOrigin || (from !== undefined && allowedHosts.has(from.hostname))
      ? undefined
      : refuse('foreign_origin')
  }
}

/**
 * Whether a client reaches this end of a connection under such a host. `localhost` of a client that has the gateway as its
 * HTTP_PROXY is the machine of the gateway.
 */
function isReachedAs({ hostname, port }: Host, { localAddress = '', localPort }: IncomingMessage['socket']): boolean {
  const isPort = port === '' ? localPort === 80 || localPort === 443 : Number(port) === localPort
  const address = canonicalAddress(hostname)
  const isHere =
    address === undefined
      ? hostname === 'localhost'
      : classifyAddress(address) === 'loopback' || address === canonicalAddress(localAddress)
  return isPort && isHere
}

/** Host name and port of an origin; an absent port and the default one of the scheme are both empty. */
function parseHost(origin: string): Host | undefined {
  const url = URL.parse(origin)
  if (url === null || url.host === '') return undefined
  return { hostname: url.hostname, port: url.port === '443' || url.port === '80' ? '' : url.port }
}
