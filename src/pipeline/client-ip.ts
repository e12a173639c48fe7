import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
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

/**
 * What connections are counted by: the address of the peer, or its /64 network in IPv6, where one client has as many
 * addresses as it likes. Undefined for trusted proxies, which carry many clients.
 */
export function createPeerOf(trustedProxies: readonly string[]): (socket: Socket) => string | undefined {
  const trusted = rangeSet(trustedProxies)
  return ({ remoteAddress }) => {
    const address = unmapped(remoteAddress ?? '')
    if (isIP(address) === 0 || inRange(trusted, address)) return undefined
    return isIP(address) === 4 ? address : networkOf(address)
  }
}

/** The first 64 bits of an IPv6 address. */
function networkOf(address: string): string {
  const [head = [], tail = []] = address.split('::').map(part => part.split(':').filter(group => group !== ''))
  const zeros = Array<string>(8 - head.length - tail.length).fill('0')
  return [...head, ...zeros, ...tail].slice(0, 4).join(':')
}

/** Empty once the connection is gone. */
function peerOf(req: IncomingMessage): string {
  return unmapped(req.socket?.remoteAddress ?? '')
}
