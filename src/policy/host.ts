import { domainToASCII } from 'node:url'

/**
 * A host name as requests carry it: lower case, IDNA ASCII form, no trailing dot, IPv6 in brackets. Undefined when the
 * text is no host (a port, a path, a space).
 */
export function normaliseHost(text: string): string | undefined {
  const trimmed = text.endsWith('.') ? text.slice(0, -1) : text
  if (trimmed.includes(':') || trimmed.startsWith('[')) return normaliseIpv6(trimmed)
  if (/^[a-z0-9._-]+$/.test(trimmed) && !trimmed.includes('xn--') && !/(^|\.)\d+$/.test(trimmed)) return trimmed
  const ascii = domainToASCII(trimmed)
  return ascii === '' ? undefined : ascii
}

function normaliseIpv6(text: string): string | undefined {
  const url = `http://${text.startsWith('[') ? text : `[${text}]`}`
  const host = URL.parse(url)?.hostname
  return host !== undefined && /^\[.*\]$/.test(host) ? host : undefined
}

/** `example.com` exact, `*.example.com` one label or more below, `.example.com` the domain and all below. */
export interface HostPattern {
  readonly exact: string | undefined
  /** With its leading dot. */
  readonly suffix: string | undefined
}

/** Undefined when the text is no host pattern. */
export function parseHostPattern(text: string): HostPattern | undefined {
  const below = text.startsWith('*.')
  const apexToo = text.startsWith('.')
  const host = normaliseHost(below ? text.slice(2) : apexToo ? text.slice(1) : text)
  if (host === undefined || host === '' || host.includes('*')) return undefined
  return { exact: below ? undefined : host, suffix: below || apexToo ? `.${host}` : undefined }
}

export function matchesHost(pattern: HostPattern, host: string): boolean {
  if (host === pattern.exact) return true
  return pattern.suffix !== undefined && host.endsWith(pattern.suffix)
}
