import type { Server } from 'node:http'
import type { Socket } from 'node:net'

export interface ConnectionLimits {
  readonly maxConnections: number
  /** 0 is no limit. */
  readonly maxConnectionsPerPeer: number
  /** What connections are counted by; those without count in the total alone. */
  readonly peerOf: (socket: Socket) => string | undefined
}

/**
 * Closes connections beyond the limits, so that one client cannot take all there are. The servers that the answer is
 * called with are counted together.
 */
export function limitConnections(limits: ConnectionLimits): (server: Server) => void {
  const { maxConnections, maxConnectionsPerPeer, peerOf } = limits
  const byPeer = new Map<string, number>()
  let all = 0

  const leave = (peer: string | undefined): void => {
    all -= 1
    if (peer === undefined) return
    const left = (byPeer.get(peer) ?? 1) - 1
    if (left === 0) byPeer.delete(peer)
    else byPeer.set(peer, left)
  }

  const admit = (socket: Socket): void => {
    const peer = maxConnectionsPerPeer === 0 ? undefined : peerOf(socket)
    const ofPeer = peer === undefined ? 0 : (byPeer.get(peer) ?? 0)
    if (all >= maxConnections || (peer !== undefined && ofPeer >= maxConnectionsPerPeer)) {
      socket.destroy()
      return
    }
    all += 1
    if (peer !== undefined) byPeer.set(peer, ofPeer + 1)
    socket.once('close', () => leave(peer))
  }

  return server => {
    // Closes what is beyond the total before any work is done on it; not enough alone, as each server counts its own.
    server.maxConnections = maxConnections
    server.on('connection', admit)
  }
}
