import { isIP } from 'node:net'
import { AddressRanges, parseRange } from '../base/address.ts'
import { normaliseHost } from '../base/host.ts'

/** Domains, each with all names below it, and address ranges in CIDR notation. */
export interface Subtrees {
  readonly names: readonly string[]
  readonly ranges: readonly string[]
}

/** Which hosts an authority may issue certificates for (RFC 5280 section 4.2.1.10). */
export interface NameConstraints {
  readonly permitted: Subtrees
  readonly excluded: Subtrees
}

const nothing: Subtrees = { names: [], ranges: [] }
/** A name that no host has (RFC 6761 section 6.4): constraints must name one, else every name is permitted. */
const noName = 'invalid'

/**
 * Constraints that permit these domains and addresses alone; undefined when there are none.
 *
 * @param permit domains, such as example.com, which permit the names below them too; addresses, and ranges such as 10.0.0.0/8
 * @returns text that is neither, if there is one
 */
export function parsePermitted(permit: readonly string[]): NameConstraints | undefined | { readonly wrong: string } {
  const names: string[] = []
  const ranges: string[] = []
  for (const text of permit) {
    const range = parseRange(text)
    const name = /[:/]/.test(text) ? undefined : normaliseHost(text)
    if (range !== undefined) ranges.push(`${range.address}/${range.prefix}`)
    else if (name !== undefined && /^[a-z0-9_.-]+$/.test(name) && isIP(name) === 0) names.push(name)
    else return { wrong: text }
  }
  if (permit.length === 0) return undefined
  return {
    permitted: { names: names.length === 0 ? [noName] : names, ranges },
    // A form of names without a permitted subtree is not constrained.
    excluded: ranges.length === 0 ? { names: [], ranges: ['0.0.0.0/0', '::/0'] } : nothing,
  }
}

/** What was given to `parsePermitted`. */
export const permittedBy = ({ permitted }: NameConstraints): readonly string[] => [
  ...permitted.names.filter(name => name !== noName),
  ...permitted.ranges,
]

/**
 * Tells of a host whether certificates for it comply.
 *
 * @returns takes a name in lower case, or an address without brackets
 */
export function createPermits(constraints: NameConstraints | undefined): (host: string) => boolean {
  if (constraints === undefined) return () => true
  const { permitted, excluded } = constraints
  const [inPermitted, inExcluded] = [AddressRanges.of(permitted.ranges), AddressRanges.of(excluded.ranges)]
  return host => {
    if (isIP(host) !== 0) {
      if (inExcluded.has(host)) return false
      return permitted.ranges.length === 0 || inPermitted.has(host)
    }
    if (isBelowAny(excluded.names, host)) return false
    return permitted.names.length === 0 || isBelowAny(permitted.names, host)
  }
}

const isBelowAny = (names: readonly string[], host: string): boolean => names.some(name => isBelow(name, host))

/** An empty name is above every other; one with a leading dot is only above those below it, as OpenSSL reads it. */
function isBelow(name: string, host: string): boolean {
  if (name === '' || host === name) return true
  return host.endsWith(name.startsWith('.') ? name : `.${name}`)
}
