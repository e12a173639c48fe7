import { canonicalAddress, classifyAddress } from '../../base/address.ts'
import type { Destination } from './input.ts'

/** The destination as rules see it: the address in its one spelling, and its class. */
export function destinationOf(ip: string): Destination {
  const kind = classifyAddress(ip)
  const special = kind === 'unspecified' || kind === 'multicast' || kind === 'embedded'
  return { ip: canonicalAddress(ip) ?? ip, class: special ? 'reserved' : kind }
}
