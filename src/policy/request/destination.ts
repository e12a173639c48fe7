import { canonicalAddress, classifyAddress } from '../../base/address.ts'
import { Memo } from '../../base/memo.ts'
import type { Destination } from './input.ts'

/** Found before: each allowed request asks for its destination, and there are few. */
const cache = new Memo<string, Destination>(10_000)

/** The destination as rules see it: the address in its one spelling, and its class. */
export function destinationOf(ip: string): Destination {
  const before = cache.get(ip)
  if (before !== undefined) return before
  const kind = classifyAddress(ip)
  const special = kind === 'unspecified' || kind === 'multicast' || kind === 'embedded'
  const found: Destination = { ip: canonicalAddress(ip) ?? ip, class: special ? 'reserved' : kind }
  cache.set(ip, found)
  return found
}
