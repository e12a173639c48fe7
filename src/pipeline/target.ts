import { isIPv6 } from 'node:net'
import { domainToUnicode } from 'node:url'
import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import type { Origin } from '../upstream/origin.ts'
import { createOrigin } from '../upstream/origin.ts'

/**
 * The one parsed URL of a proxied request. Policy, review record, audit and wire all use these strings, so that
 * what is decided on is what is sent.
 */
export interface Target {
  readonly origin: Origin
  /** As it is sent, not decoded; begins with a slash. */
  readonly path: string
  /** Without the question mark; undefined when the URL has none. */
  readonly query: string | undefined
  /** Path and query as they stand in the request line. */
  readonly requestTarget: string
  readonly url: string
}

const form = /^(https?):\/\/([^/?]*)([^?]*)(?:\?(.*))?$/i
const unsafeByte = /[^\x21-\x7e]/
const dotSegment = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i
const hostLabel = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

const maxOrigins = 4_096
const origins = new Map<string, Origin>()

/**
 * Reads the raw text behind `/proxy/`. Whatever a URL parser would repair or drop is refused with the reason: the
 * parser of the upstream might repair it in another way.
 */
export function parseTarget(raw: string): Target | Refusal {
  const problem = malformed(raw)
  if (problem !== undefined) return refuse('invalid_target', problem)
  const match = form.exec(raw)
  if (match === null) return refuse('invalid_target', notAbsolute(raw))
  const origin = parseOrigin((match[1] as string).toLowerCase() as 'http' | 'https', match[2] as string)
  if ('refusal' in origin) return origin
  const path = match[3] === '' ? '/' : (match[3] as string)
  if (dotSegment.test(path)) {
    return refuse('invalid_target', 'The path has dot segments. Send it as it should reach the upstream.')
  }
  const query = match[4]
  const requestTarget = query === undefined ? path : `${path}?${query}`
  return { origin, path, query, requestTarget, url: origin.key + requestTarget }
}

function malformed(raw: string): string | undefined {
  if (raw === '') return 'Nothing follows /proxy/. Call /proxy/https://host/path.'
  if (unsafeByte.test(raw)) return 'The target has a control, space or non-ASCII byte. Percent-encode it.'
  if (raw.includes('#')) return 'The target has a fragment. Fragments are not sent; leave it out.'
  if (raw.includes('\\')) return 'The target has a backslash. Percent-encode it as %5C.'
  return undefined
}

function notAbsolute(raw: string): string {
  if (/^https?:\/[^/]/i.test(raw)) {
    return 'The target has one slash behind its scheme. An intermediary may have merged slashes; switch that off there.'
  }
  return 'The target must begin with http:// or https://, not percent-encoded.'
}

/** Origins are few and requests many: each is checked once and then found by its text. */
function parseOrigin(scheme: 'http' | 'https', authority: string): Origin | Refusal {
  const text = `${scheme}://${authority}`
  const known = origins.get(text)
  if (known !== undefined) return known
  const parsed = checkAuthority(scheme, authority)
  if ('refusal' in parsed) return parsed
  if (origins.size >= maxOrigins) origins.delete(origins.keys().next().value as string)
  origins.set(text, parsed)
  return parsed
}

function checkAuthority(scheme: 'http' | 'https', authority: string): Origin | Refusal {
  if (authority.includes('@')) {
    return refuse('invalid_target', 'The target carries credentials before the host. Send them in a header.')
  }
  const match = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(authority)
  const host = match?.[1]?.toLowerCase() ?? ''
  const port = portOf(scheme, match?.[2])
  if (port === undefined) return refuse('invalid_target', 'The port must be a number from 1 to 65535.')
  const problem = hostProblem(host)
  if (problem !== undefined) return refuse('invalid_target', problem)
  return createOrigin(scheme, host, port)
}

function portOf(scheme: 'http' | 'https', text: string | undefined): number | undefined {
  if (text === undefined) return scheme === 'http' ? 80 : 443
  if (!/^[1-9][0-9]{0,4}$/.test(text)) return undefined
  const port = Number(text)
  return port <= 65_535 ? port : undefined
}

function hostProblem(host: string): string | undefined {
  if (host === '') return 'The target has no host.'
  if (host.startsWith('[')) {
    return isIPv6(host.slice(1, -1)) && canonical(host) === host ? undefined : notCanonical(host)
  }
  if (host.endsWith('.')) return 'The host ends in a dot. Leave it out.'
  if (host.length > 253 || !host.split('.').every(isLabel)) {
    return 'The host is not a valid host name. International names are written in their xn-- form.'
  }
  return canonical(host) === host ? undefined : notCanonical(host)
}

/** A label of a host name (RFC 1123 section 2.1, and the underscore that many use); xn-- must decode (RFC 5891). */
function isLabel(label: string): boolean {
  return hostLabel.test(label) && (!label.startsWith('xn--') || domainToUnicode(label) !== label)
}

function notCanonical(host: string): string {
  const better = canonical(host)
  const hint = better === undefined ? '' : ` Write it as ${better}.`
  return `The host is not in its canonical form.${hint}`
}

/** The host as a URL parser writes it: reveals short, octal and hexadecimal addresses. */
function canonical(host: string): string | undefined {
  return URL.parse(`http://${host}/`)?.hostname
}
