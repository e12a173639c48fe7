import { isIP, type Socket } from 'node:net'
import { AddressRanges, canonicalAddress, networkOf, unmapped } from '../base/address.ts'
import { fieldValues } from '../http/headers.ts'
import { tunnelClientIp } from '../http/own-urls.ts'
import { isUnixPeer, unixPeer } from '../http/unix-socket.ts'

/** Address of the client that sent these header fields (flat) over this connection. */
export type ClientIp = (socket: Socket, rawHeaders: readonly string[]) => string

/**
 * Address of the client: the peer, or the address that a trusted proxy reports. `X-Forwarded-For` is read from the right,
 * and only while each hop is trusted: entries further left may be forged. In a tunnel that of its CONNECT counts. Clients over a unix socket have no address: all of
 * them are `unix`, and trusted as a proxy only when that name is among the trusted ones.
 */
export function createClientIp(trustedProxies: readonly string[]): ClientIp {
  if (trustedProxies.length === 0) return addressOf
  const trusts = trustIn(trustedProxies)
  return (socket, rawHeaders) => {
    const known = tunnelClientIp(socket)
    if (known !== undefined) return known
    const peer = addressOf(socket)
    if (!trusts(peer)) return peer
    const hops = fieldValues(rawHeaders, 'x-forwarded-for').join(',').split(',')
    let client = peer
    for (const hop of hops.reverse()) {
      const address = canonicalAddress(hop.trim())
      if (address === undefined) break
      client = address
      if (!trusts(address)) break
    }
    return client
  }
}

/**
 * The key by which connections are counted: the address of the peer, or in IPv6 its /64 network, since one client can use
 * every address in it. Undefined for trusted proxies, which carry many clients.
 */
export function createPeerOf(trustedProxies: readonly string[]): (socket: Socket) => string | undefined {
  const trusts = trustIn(trustedProxies)
  // Worked out once for each address: most connections come from a few.
  const cache = new Map<string, string | undefined>()
  const learn = (address: string): string | undefined => {
    if (cache.size >= maxCached) cache.clear()
    const peer = address === '' || trusts(address) ? undefined : networkOf(address)
    cache.set(address, peer)
    return peer
  }
  return socket => {
    const address = addressOf(socket)
    return cache.get(address) ?? (cache.has(address) ? undefined : learn(address))
  }
}

/** Addresses of peers that are remembered. */
const maxCached = 1_024

function trustIn(trustedProxies: readonly string[]): (peer: string) => boolean {
  const trustsUnix = trustedProxies.some(isUnix)
  const ranges = AddressRanges.of(trustedProxies.filter(one => !isUnix(one)))
  return peer => (isIP(peer) === 0 ? trustsUnix && peer === unixPeer : ranges.hasCanonical(peer))
}

const isUnix = (name: string) => name.toLowerCase() === unixPeer

/** Empty once the connection is gone. */
function addressOf(socket: Socket): string {
  const { remoteAddress } = socket
  if (remoteAddress !== undefined) return unmapped(remoteAddress)
  return isUnixPeer(socket) ? unixPeer : ''
}
