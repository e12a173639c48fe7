import { isIPv4 } from 'node:net'
import { parseRange } from '../base/address.ts'

/** The 4 or 16 bytes of an address without brackets and zone, as certificates have them. */
export function addressBytes(address: string): Uint8Array {
  if (isIPv4(address)) return Uint8Array.from(address.split('.'), Number)
  const [head = [], tail = []] = hexGroups(address)
  const zeros = Array<number>(8 - head.length - tail.length).fill(0)
  const groups = [...head, ...zeros, ...tail]
  return Uint8Array.from(groups.flatMap(group => [group >> 8, group & 0xff]))
}

/** The groups before and behind `::`. The system's parser writes the last four bytes as two groups. */
function hexGroups(address: string): readonly (readonly number[])[] {
  const { hostname } = new URL(`http://[${address}]`)
  return hostname
    .slice(1, -1)
    .split('::')
    .map(part => part.split(':').filter(group => group !== ''))
    .map(groups => groups.map(group => Number.parseInt(group, 16)))
}

/**
 * A range as name constraints have it: the address, and the mask in as many bytes (RFC 5280 section 4.2.1.10).
 *
 * @param range in CIDR notation
 */
export function rangeBytes(range: string): Uint8Array {
  const parsed = parseRange(range)
  if (parsed === undefined) throw new TypeError(`${range} is not a range`)
  const address = addressBytes(parsed.address)
  const mask = address.map((_, index) => 0xff00 >> Math.min(8, Math.max(0, parsed.prefix - 8 * index)))
  return Uint8Array.of(...address.map((byte, index) => byte & mask[index]!), ...mask)
}

/** The same in CIDR notation. A mask with gaps, which no authority has, is read as the mask of one address. */
export function rangeText(bytes: Uint8Array): string {
  const size = bytes.length / 2
  const bits = Array.from(bytes.subarray(size), byte => byte.toString(2).padStart(8, '0')).join('')
  const zero = bits.indexOf('0')
  const prefix = bits.includes('01') || zero < 0 ? bits.length : zero
  const address = bytes.subarray(0, size)
  if (size === 4) return `${address.join('.')}/${prefix}`
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((address[2 * index]! << 8) | address[2 * index + 1]!).toString(16),
  )
  return `${groups.join(':')}/${prefix}`
}
