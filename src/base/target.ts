import { isIPv6 } from 'node:net'
import { domainToUnicode } from 'node:url'
import { normaliseIpv6 } from './host.ts'
import { DirectMappedCache, Memo } from './memo.ts'
import { createOrigin, type Origin } from './origin.ts'
import { readingsOf } from './readings.ts'

/**
 * The one parsed URL of a proxied request. Policy, review record, audit and wire all use these strings, so that
 * the request that was decided is the request that is sent.
 */
export interface Target {
  readonly origin: Origin
  /** As it is sent, not decoded; begins with a slash. */
  readonly path: string
  /** Every way in which servers read the path, the literal one first; undefined when there is only one. */
  readonly readings: readonly string[] | undefined
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

const origins = new Memo<string, Origin>(4_096)

/** Agents call the same few URLs again and again. Longer ones, and those with a query, are not kept. */
const maxKnownLength = 512
const targets = new DirectMappedCache<Target>(1_024)

/**
 * Parses an absolute URL: the raw text behind `/proxy/`, or the URL of a described request. Text that a URL parser would
 * repair or drop is rejected, because the parser of the upstream might repair it in another way. Returns what is wrong
 * as a sentence for the caller.
 */
export function parseTarget(raw: string): Target | string {
  const known = targets.get(raw)
  if (known !== undefined) return known
  const parsed = parse(raw)
  if (typeof parsed !== 'string' && parsed.query === undefined && raw.length <= maxKnownLength) targets.set(raw, parsed)
  return parsed
}

function parse(raw: string): Target | string {
  const problem = malformed(raw)
  if (problem !== undefined) return problem
  const match = form.exec(raw)
  if (match === null) return notAbsolute(raw)
  const origin = parseOrigin(match[1]!.length === 4 ? 'http' : 'https', match[2]!)
  if (typeof origin === 'string') return origin
  const path = match[3] === '' ? '/' : match[3]!
  if (dotSegment.test(path)) return 'The path has dot segments. Send it as it should reach the upstream.'
  const readings = readingsOf(path)
  if (typeof readings === 'string') return readings
  const query = match[4]
  const requestTarget = query === undefined ? path : `${path}?${query}`
  return { origin, path, readings, query, requestTarget, url: origin.key + requestTarget }
}

function malformed(raw: string): string | undefined {
  if (raw === '') return 'The target is empty. Call /proxy/https://host/path.'
  if (unsafeByte.test(raw)) return 'The target has a control, space or non-ASCII byte. Percent-encode it.'
  if (raw.includes('#')) return 'The target has a fragment. Fragments are not sent; leave it out.'
  if (raw.includes('\\')) return 'The target has a backslash. Percent-encode it as %5C.'
  return undefined
}

function notAbsolute(raw: string): string {
  if (/^https?:\/[^/]/i.test(raw)) {
    return 'The target has one slash behind its scheme. Something on the way merged slashes. Call /proxy/https/host/path.'
  }
  return 'The target must begin with http:// or https://, not percent-encoded.'
}

/** Origins are few and requests many: each is checked once and then found by its text. */
function parseOrigin(scheme: 'http' | 'https', authority: string): Origin | string {
  const text = `${scheme}://${authority}`
  const known = origins.get(text)
  if (known !== undefined) return known
  const parsed = checkAuthority(scheme, authority)
  if (typeof parsed === 'string') return parsed
  origins.set(text, parsed)
  return parsed
}

function checkAuthority(scheme: 'http' | 'https', authority: string): Origin | string {
  if (authority.includes('@')) return 'The target carries credentials before the host. Send them in a header.'
  const match = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(authority)
  const host = match?.[1]?.toLowerCase() ?? ''
  const port = portOf(scheme, match?.[2])
  if (port === undefined) return 'The port must be a number from 1 to 65535.'
  return hostProblem(host) ?? createOrigin(scheme, host, port)
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

/** The host in the one spelling that rules compare: IPv4 in four decimal numbers, never inside of IPv6. */
function canonical(host: string): string | undefined {
  const parsed = URL.parse(`http://${host}/`)?.hostname
  return parsed?.startsWith('[') === true ? normaliseIpv6(parsed) : parsed
}
