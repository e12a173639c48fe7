/** Links in answers: where a client reaches a URL of an upstream through the gateway. */

import { isSecretName } from '../base/secret-names.ts'
import type { Target } from '../base/target.ts'
import { bareMark } from '../http/request-line.ts'
import { type Links, portOf, type VirtualHost } from '../http/virtual-hosts.ts'
import type { Exchange } from './exchange.ts'

/** The part of an exchange that decides where its answer may send the client. */
export interface Answered extends Pick<Exchange, 'addressing' | 'tokenNames' | 'dropsCredentials'> {
  readonly target: Target
  readonly fields: Pick<Exchange['fields'], 'host' | 'names'>
}

/**
 * The link with which the client reaches what an upstream refers to; undefined when it cannot.
 *
 * @param reference relative to the target of the request; bytes, each as the code point of the same number
 */
export function linkTo(reference: string, exchange: Answered, links: Links): string | undefined {
  const url = URL.parse(reference.replace(/[\x80-\xff]/g, percentEncoded), exchange.target.url)
  return url === null ? undefined : throughGateway(url, exchange, links)
}

const percentEncoded = (byte: string): string => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`

function throughGateway(url: URL, exchange: Answered, links: Links): string | undefined {
  const { addressing } = exchange
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined
  // A path alone: only the client knows the name by which it reached the gateway.
  if (typeof addressing === 'string') return underProxy(url, exchange)
  const path = pathOf(url)
  // A path of two slashes would be read as a host.
  if (url.origin === addressing.upstream.key && !path.startsWith('//')) return path
  const { publicUrl } = links
  return onVirtualHost(url, exchange, links) ?? (publicUrl && publicUrl + underProxy(url, exchange))
}

const pathOf = ({ pathname, search, hash }: URL): string => pathname + search + hash

/**
 * A client that follows a link to another server drops the credentials of the first one. Under `/proxy/` all servers look
 * like one to it, so the link says that the gateway drops them.
 */
function underProxy(url: URL, exchange: Answered): string {
  const href = exchange.addressing === 'path' ? url.href.replace('://', '/') : url.href
  const isBare = exchange.dropsCredentials || (url.origin !== exchange.target.origin.key && sendsCredentials(exchange))
  return `/proxy/${isBare ? bareMark : ''}${href}`
}

/** Whether the request has credentials of its own for the upstream. Cookies have a path below their upstream. */
function sendsCredentials({ fields, tokenNames }: Answered): boolean {
  return fields.names.some(({ lower, folded }) => {
    return lower !== 'cookie' && !tokenNames.includes(folded) && isSecretName(lower)
  })
}

/** The URL on the virtual host of its origin; undefined without one. */
export function onVirtualHost(url: URL, exchange: Answered, links: Links): string | undefined {
  const { addressing } = exchange
  const isSame = typeof addressing === 'object' && addressing.upstream.key === url.origin
  const host = isSame ? addressing : links.hosts?.of(url.origin)
  return host && virtualOrigin(host, exchange, links) + pathOf(url)
}

/** Scheme, name and port under which the client reaches a virtual host: by the port that it has called. */
export function virtualOrigin({ host }: VirtualHost, { fields }: Answered, { scheme }: Links): string {
  return `${scheme}://${host}${portOf(fields.host)}`
}
