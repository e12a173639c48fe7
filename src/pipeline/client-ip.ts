import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { fieldValues } from '../http/headers.ts'
import { inRange, rangeSet, unmapped } from '../upstream/address.ts'

/**
 * Address of the client: the peer, or what a trusted proxy says of it. `X-Forwarded-For` is read from the right, and
 * only as far as each hop is trusted: what lies left of that may be made up.
 */
export function createClientIp(trustedProxies: readonly string[]): (req: IncomingMessage) => string {
  if (trustedProxies.length === 0) return peerOf
  const trusted = rangeSet(trustedProxies)
  return req => {
    const peer = peerOf(req)
    if (isIP(peer) === 0 || !inRange(trusted, peer)) return peer
    const hops = fieldValues(req.rawHeaders, 'x-forwarded-for').join(',').split(',')
    let client = peer
    for (const hop of hops.reverse()) {
      const address = unmapped(hop.trim())
      if (isIP(address) === 0) break
      client = address
      if (!inRange(trusted, address)) break
    }
    return client
  }
}

/** Empty once the connection is gone. */
function peerOf(req: IncomingMessage): string {
  return unmapped(req.socket?.remoteAddress ?? '')
}
