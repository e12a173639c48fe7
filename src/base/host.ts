import { domainToASCII } from 'node:url'
import { canonicalAddress } from './address.ts'

/** Already in its normal form, unless a label is punycode. A last label that begins with a digit may be an address. */
const plainName = /^(?:[a-z0-9_-]+\.)*[a-z][a-z0-9_-]*$/

/**
 * A host as targets carry it: lower case, IDNA ASCII form, no trailing dot, IPv4 in four decimal numbers, IPv6 in
 * brackets, IPv4-mapped IPv6 as IPv4. Undefined when the text is not a host (a port, a path, a space).
 */
export function normaliseHost(text: string): string | undefined {
  const trimmed = text.endsWith('.') ? text.slice(0, -1) : text
  if (trimmed.includes(':') || trimmed.startsWith('[')) return normaliseIpv6(trimmed)
  if (plainName.test(trimmed) && !trimmed.includes('xn--')) return trimmed
  if (/[\s%*/?#@\\]/.test(trimmed)) return undefined
  const ascii = domainToASCII(trimmed)
  return ascii === '' ? undefined : ascii
}

/** The form that an IPv6 address has in a target. */
export function normaliseIpv6(text: string): string | undefined {
  const address = canonicalAddress(text)
  return address?.includes(':') === true ? `[${address}]` : address
}

/** `example.com` exact, `*.example.com` one label or more below, `.example.com` the domain and all below. */
export interface HostPattern {
  readonly exact: string | undefined
  /** With its leading dot. */
  readonly suffix: string | undefined
}

export function parseHostPattern(text: string): HostPattern | undefined {
  const below = text.startsWith('*.')
  const apexToo = text.startsWith('.')
  const host = normaliseHost(below ? text.slice(2) : apexToo ? text.slice(1) : text)
  if (host === undefined || host === '') return undefined
  return { exact: below ? undefined : host, suffix: below || apexToo ? `.${host}` : undefined }
}

/** @param host in its normal form */
export function matchesHost(pattern: HostPattern, host: string): boolean {
  if (host === pattern.exact) return true
  return pattern.suffix !== undefined && host.endsWith(pattern.suffix)
}

/** A host pattern with or without a port: `example.com:8443`. */
export interface PlacePattern {
  readonly host: HostPattern
  readonly port: number | undefined
}

/** @throws TypeError when it is none */
export function parsePlacePattern(text: string): PlacePattern {
  const [, name = '', port] = /^(.*?)(?::(\d+))?$/.exec(text) ?? []
  return { host: parseHostPatterns([name])[0]!, port: port === undefined ? undefined : Number(port) }
}

/** @throws TypeError when one of them is not a host pattern */
export function parseHostPatterns(texts: readonly string[]): readonly HostPattern[] {
  return texts.map(text => {
    const pattern = parseHostPattern(text)
    if (pattern === undefined) throw new TypeError(`${text} is not a host pattern`)
    return pattern
  })
}

export function matchesAnyHost(patterns: readonly HostPattern[], host: string): boolean {
  for (const pattern of patterns) if (matchesHost(pattern, host)) return true
  return false
}
