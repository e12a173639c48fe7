import { BlockList, isIP } from 'node:net'
import type { Destination } from './input.ts'

/** Address ranges of `ipIn`. IPv4 inside IPv6 (`::ffff:a.b.c.d`) counts as the IPv4 address. */
export class AddressRanges {
  readonly #list = new BlockList()

  /** False when the text is neither an address nor a CIDR range. */
  add(text: string): boolean {
    const slash = text.indexOf('/')
    const address = slash < 0 ? text : text.slice(0, slash)
    const family = isIP(address)
    if (family === 0) return false
    const type = family === 4 ? 'ipv4' : 'ipv6'
    const widest = family === 4 ? 32 : 128
    const prefix = slash < 0 ? String(widest) : text.slice(slash + 1)
    if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > widest) return false
    this.#list.addSubnet(address, Number(prefix), type)
    this.#addMapped(address, Number(prefix), type)
    return true
  }

  /** A mapped IPv6 range of the policy also means its IPv4 form. */
  #addMapped(address: string, prefix: number, type: 'ipv4' | 'ipv6'): void {
    const mapped = type === 'ipv6' ? unmap(address) : undefined
    if (mapped !== undefined && prefix >= 96) this.#list.addSubnet(mapped, prefix - 96, 'ipv4')
  }

  has(text: string): boolean {
    const address = text.startsWith('[') ? text.slice(1, -1) : text
    const plain = unmap(address) ?? address
    const family = isIP(plain)
    return family !== 0 && this.#list.check(plain, family === 4 ? 'ipv4' : 'ipv6')
  }
}

/** The IPv4 address inside an IPv4-mapped IPv6 address. */
function unmap(address: string): string | undefined {
  if (!address.includes(':') || isIP(address) !== 6) return undefined
  const canonical = URL.parse(`http://[${address.split('%')[0]}]`)?.hostname ?? ''
  const match = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(canonical)
  if (match === null) return undefined
  const high = Number.parseInt(match[1]!, 16)
  const low = Number.parseInt(match[2]!, 16)
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

function ranges(...list: readonly string[]): AddressRanges {
  const result = new AddressRanges()
  for (const text of list) result.add(text)
  return result
}

const classes = [
  ['metadata', ranges('169.254.169.254', '169.254.170.2', '168.63.129.16', '100.100.100.200', 'fd00:ec2::254')],
  ['loopback', ranges('127.0.0.0/8', '::1')],
  ['linkLocal', ranges('169.254.0.0/16', 'fe80::/10')],
  ['private', ranges('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7')],
  ['reserved', ranges('0.0.0.0/8', '192.0.0.0/24', '198.18.0.0/15', '224.0.0.0/3', '::', 'ff00::/8')],
] as const

/** What kind of network a described address is in. Real requests bring the class of the address connected to. */
export function classOf(ip: string): Destination['class'] {
  return classes.find(([, list]) => list.has(ip))?.[0] ?? 'public'
}
