import type { Target } from '../base/target.ts'
import { passFields } from '../http/headers.ts'
import { fieldName } from '../http/names.ts'
import { type Links, portOf, type VirtualHost } from '../http/virtual-hosts.ts'
import type { Exchange } from './exchange.ts'

/** The part of an exchange that decides where its answer may send the client. */
export interface Answered extends Pick<Exchange, 'addressing' | 'tokenNames'> {
  readonly target: Target
  readonly fields: Pick<Exchange['fields'], 'host'>
}

/**
 * The fields of an upstream's answer as the client gets them, flat. A client that follows a redirect sends its headers
 * along, the gateway's token too: so `Location` and `Content-Location` point back at the gateway. Cookies get a path
 * below `/proxy/<origin>`, so that no other upstream receives them; a virtual host has no other upstream.
 */
export function answerFields(received: readonly string[], exchange: Answered, links: Links): string[] {
  const fields: string[] = []
  if (!passFields(received, fields)) return fields
  for (let i = 0; i < fields.length; i += 2) {
    const { lower, leadsOn } = fieldName(fields[i]!)
    if (!leadsOn) continue
    if (lower === 'set-cookie') {
      if (links.cookies === 'Scope') fields[i + 1] = scopedCookie(fields[i + 1]!, exchange)
    } else if (lower === 'www-authenticate') challenge(fields, i, exchange, links)
    else if (links.redirects === 'Rewrite') pointBack(fields, i, exchange, links)
  }
  return fields
}

/** The original stays readable. A reference that cannot be followed through the gateway is renamed. */
function pointBack(fields: string[], at: number, exchange: Answered, links: Links): void {
  const value = fields[at + 1]!
  const url = URL.parse(value.replace(/[\x80-\xff]/g, percentEncoded), exchange.target.url)
  const rewritten = url === null ? undefined : throughGateway(url, exchange, links)
  if (rewritten === undefined) rename(fields, at)
  else {
    fields.push(`Gateway-Upstream-${fields[at]}`, value)
    fields[at + 1] = rewritten
  }
}

function rename(fields: string[], at: number): void {
  fields[at] = `Gateway-Upstream-${fields[at]}`
}

/** Field values are bytes, each as the code point of the same number. */
const percentEncoded = (byte: string): string => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`

/** Where the client reaches the URL through the gateway; undefined when it cannot. */
function throughGateway(url: URL, exchange: Answered, links: Links): string | undefined {
  const { addressing } = exchange
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined
  // A path alone: only the client knows the name by which it reached the gateway.
  if (addressing === 'url') return `/proxy/${url.href}`
  if (addressing === 'path') return `/proxy/${url.href.replace('://', '/')}`
  const path = pathOf(url)
  // A path of two slashes would be read as a host.
  if (url.origin === addressing.upstream.key && !path.startsWith('//')) return path
  const { publicUrl } = links
  return onVirtualHost(url, exchange, links) ?? (publicUrl === undefined ? undefined : `${publicUrl}/proxy/${url.href}`)
}

const pathOf = ({ pathname, search, hash }: URL): string => pathname + search + hash

/** The URL on the virtual host of its origin. */
function onVirtualHost(url: URL, exchange: Answered, links: Links): string | undefined {
  const { addressing } = exchange
  const isSame = typeof addressing === 'object' && addressing.upstream.key === url.origin
  const host = isSame ? addressing : links.hosts?.of(url.origin)
  return host && virtualOrigin(host, exchange, links) + pathOf(url)
}

/** Scheme, name and port under which the client reaches a virtual host: by the port that it has called. */
export function virtualOrigin({ host }: VirtualHost, { fields }: Answered, { scheme }: Links): string {
  return `${scheme}://${host}${portOf(fields.host)}`
}

/**
 * A client whose credential for the gateway was in `Authorization` would answer the challenge of an upstream with that
 * credential, and send it to the address that the challenge names. On a virtual host the metadata of OAuth (RFC 9728
 * section 5.1) is found there.
 */
function challenge(fields: string[], at: number, exchange: Answered, links: Links): void {
  if (exchange.tokenNames.includes('authorization')) {
    rename(fields, at)
    return
  }
  if (typeof exchange.addressing === 'string') return
  fields[at + 1] = fields[at + 1]!.replace(/(\bresource_metadata=")([^"]*)"/i, (whole, name: string, text: string) => {
    const url = URL.parse(text)
    const rewritten = url === null ? undefined : onVirtualHost(url, exchange, links)
    return rewritten === undefined ? whole : `${name}${rewritten}"`
  })
}

/**
 * Removes `Domain`, and moves `Path` to where the client finds the upstream. Without a path the client takes that of its
 * request (RFC 6265 section 5.1.4), which is there already.
 */
function scopedCookie(cookie: string, { target, addressing }: Answered): string {
  const [pair = '', ...attributes] = cookie.split(';')
  let path: string | undefined
  const kept = attributes.filter(attribute => {
    const [name = '', value = ''] = attribute.split('=', 2)
    const lower = name.trim().toLowerCase()
    if (lower === 'path') path = value.trim()
    return lower !== 'path' && lower !== 'domain'
  })
  // A path that does not begin with a slash counts as absent (RFC 6265 section 5.2.4).
  if (path?.startsWith('/') === true) kept.push(` Path=${cookiePath(path, target.origin.key, addressing)}`)
  return [pair, ...kept].join(';')
}

function cookiePath(path: string, origin: string, addressing: Answered['addressing']): string {
  if (typeof addressing === 'object') return path
  return `/proxy/${addressing === 'url' ? origin : origin.replace('://', '/')}${path === '/' ? '' : path}`
}
