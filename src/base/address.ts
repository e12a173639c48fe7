import { BlockList, isIP } from 'node:net'
import { memoized } from './memo.ts'

/** Class of an address, by the IANA special-purpose registries (RFC 6890) and the fixed addresses of clouds. */
export type AddressClass =
  | 'public'
  | 'private'
  | 'loopback'
  | 'linkLocal'
  | 'metadata'
  | 'unspecified'
  | 'multicast'
  | 'reserved'
  | 'embedded'

const ranges: readonly (readonly [AddressClass, readonly string[]])[] = [
  [
    'metadata',
    [
      '169.254.169.254/32',
      '169.254.170.2/32',
      '169.254.170.23/32',
      '168.63.129.16/32',
      '100.100.100.200/32',
      '192.0.0.192/32',
      'fd00:ec2::254/128',
      'fd00:ec2::23/128',
      'fd20:ce::254/128',
    ],
  ],
  ['unspecified', ['0.0.0.0/8', '::/128']],
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['linkLocal', ['169.254.0.0/16', 'fe80::/10']],
  ['multicast', ['224.0.0.0/4', 'ff00::/8']],
  // IPv6 that carries an IPv4 address: translated, tunnelled or compatible. The real destination is not visible.
  ['embedded', ['::/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48', '2002::/16', '2001::/32']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7', 'fec0::/10']],
  [
    'reserved',
    [
      '192.0.0.0/24',
      '192.0.2.0/24',
      '192.88.99.0/24',
      '198.18.0.0/15',
      '198.51.100.0/24',
      '203.0.113.0/24',
      '240.0.0.0/4',
      '100::/64',
      '100:0:0:1::/64',
      '2001::/23',
      '2001:db8::/32',
      '3fff::/20',
      '5f00::/16',
    ],
  ],
]

/** Brackets, as URLs write them, are left out. */
function withoutBrackets(text: string): string {
  return text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
}

/**
 * An IPv4-mapped IPv6 address as IPv4, to which the socket really connects (RFC 4291 section 2.5.5.2). Only for addresses
 * that the system wrote; canonicalAddress handles every spelling.
 */
export function unmapped(ip: string): string {
  if (!ip.startsWith('::f') && !ip.startsWith('::F')) return ip
  const match = /^::ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(ip)
  if (match === null) return ip
  if (match[1] !== undefined) return match[1]
  const high = Number.parseInt(match[2]!, 16)
  const low = Number.parseInt(match[3]!, 16)
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/**
 * The one spelling of an address: RFC 5952 for IPv6, IPv4-mapped IPv6 as IPv4, without brackets and zone. Undefined
 * when the text is not an address.
 */
export function canonicalAddress(text: string): string | undefined {
  const address = withoutBrackets(text)
  const family = isIP(address)
  if (family !== 6) return family === 4 ? address : undefined
  const parsed = URL.parse(`http://[${address.split('%', 1)[0]}]`)
  return unmapped(withoutBrackets(parsed?.hostname ?? address))
}

/** The address that the host of a URL is, without brackets; undefined for a name. */
export function literalAddress(host: string): string | undefined {
  const address = withoutBrackets(host)
  return isIP(address) === 0 ? undefined : address
}

/**
 * The key by which clients are counted: the address, or in IPv6 its first 64 bits, because one client can use every address
 * of its network. Text that is not an address is returned unchanged.
 */
export function networkOf(ip: string): string {
  const address = unmapped(ip.toLowerCase())
  if (isIP(address) !== 6) return address
  const [head = [], tail = []] = address.split('::').map(part => part.split(':').filter(group => group !== ''))
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0')
  return [...head, ...zeros, ...tail].slice(0, 4).join(':')
}

/** A set of addresses and ranges in CIDR notation. A range of IPv4-mapped IPv6 is one of IPv4. */
export class AddressRanges {
  readonly #list = new BlockList()

  /** @throws TypeError when one of them is neither an address nor a range */
  static of(cidrs: readonly string[]): AddressRanges {
    const ranges = new AddressRanges()
    const wrong = cidrs.find(cidr => !ranges.add(cidr))
    if (wrong !== undefined) throw new TypeError(`${wrong} is not an address or CIDR range`)
    return ranges
  }

  /** False when the text is neither an address nor a range. */
  add(cidr: string): boolean {
    const range = parseRange(cidr)
    if (range === undefined) return false
    this.#list.addSubnet(range.address, range.prefix, range.family)
    return true
  }

  /** @param text any spelling of an address */
  has(text: string): boolean {
    const address = canonicalAddress(text)
    return address !== undefined && this.hasCanonical(address)
  }

  /** The same for an address in its one spelling, at less cost. */
  hasCanonical(address: string): boolean {
    const family = isIP(address)
    return family !== 0 && this.#list.check(address, family === 4 ? 'ipv4' : 'ipv6')
  }
}

interface Subnet {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** An address, or a range such as 10.0.0.0/8 or fd00::/8 (RFC 4632, RFC 4291 section 2.3); undefined: neither. */
export function parseRange(text: string): Subnet | undefined {
  const [given = '', length, ...rest] = text.split('/')
  const family = isIP(given)
  const address = canonicalAddress(given)
  if (address === undefined || given.includes('%') || rest.length > 0) return undefined
  const widest = family === 4 ? 32 : 128
  if (length !== undefined && !(/^\d{1,3}$/.test(length) && Number(length) <= widest)) return undefined
  const prefix = length === undefined ? widest : Number(length)
  if (family === 4) return { address, prefix, family: 'ipv4' }
  // A range wider than all mapped addresses is one of IPv6, although its first address is a mapped one.
  if (isIP(address) === 4 && prefix >= 96) return { address, prefix: prefix - 96, family: 'ipv4' }
  return { address: given, prefix, family: 'ipv6' }
}

const classes = ranges.map(([name, cidrs]) => ({ name, set: AddressRanges.of(cidrs) }))

/**
 * Class of an address in any spelling; the narrowest range that holds it wins. Text that is not an address is reserved,
 * so that nothing connects to it. Range sets are slow, and few addresses are asked for again and again.
 */
export const classifyAddress = memoized(10_000, (ip: string): AddressClass => {
  const address = canonicalAddress(ip)
  if (address === undefined) return 'reserved'
  return classes.find(({ set }) => set.hasCanonical(address))?.name ?? 'public'
})

/** Whether a host as people write it is this machine. */
export const isLoopback = (host: string): boolean =>
  host.toLowerCase() === 'localhost' || classifyAddress(canonicalAddress(host) ?? '') === 'loopback'
