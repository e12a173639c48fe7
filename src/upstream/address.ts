import { BlockList, isIP } from 'node:net'

/** What an address is, by the IANA special-purpose registries (RFC 6890) and the clouds' own fixed addresses. */
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
  // IPv6 that carries an IPv4 address: translated, tunnelled or compatible. Where it ends is not ours to see.
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

/** A set of address ranges in CIDR notation. The text must be valid (isCidr). */
export function rangeSet(cidrs: readonly string[]): BlockList {
  const set = new BlockList()
  for (const cidr of cidrs) {
    const [address = '', prefix] = cidr.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    set.addSubnet(address, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family)
  }
  return set
}

export function inRange(set: BlockList, ip: string): boolean {
  return set.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4')
}

const classes = ranges.map(([name, cidrs]) => ({ name, set: rangeSet(cidrs) }))

/** IPv4-mapped IPv6 is IPv4 (RFC 4291 section 2.5.5.2): the socket really goes there. */
export function unmapped(ip: string): string {
  const match = /^::ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(ip)
  if (match === null) return ip
  if (match[1] !== undefined) return match[1]
  const high = Number.parseInt(match[2] as string, 16)
  const low = Number.parseInt(match[3] as string, 16)
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/** Classes found before: range sets are slow, and few addresses are asked for again and again. */
const known = new Map<string, AddressClass>()
const maxKnown = 10_000

/**
 * Class of an address; the narrowest range that holds it wins. `ip` is without brackets. What is no address at all
 * is reserved, so that nobody connects to it.
 */
export function classifyAddress(ip: string): AddressClass {
  const before = known.get(ip)
  if (before !== undefined) return before
  const plain = unmapped(ip)
  const found = isIP(plain) === 0 ? 'reserved' : (classes.find(({ set }) => inRange(set, plain))?.name ?? 'public')
  if (known.size >= maxKnown) known.clear()
  known.set(ip, found)
  return found
}
