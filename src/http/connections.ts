import type { Server } from 'node:http'
import type { Socket } from 'node:net'

export interface ConnectionLimits {
  readonly maxConnections: number
  /** 0 is no limit. */
  readonly maxConnectionsPerPeer: number
  /** What connections are counted by; those without count in the total alone. */
  readonly peerOf: (socket: Socket) => string | undefined
}

/** The open connections of all servers, counted together. */
export interface OpenConnections {
  /** Counts those of this server too. */
  watch(server: Server): void
  /** Cuts off all of them, also those that have not got as far as a request. */
  destroy(): void
}

/** Closes connections beyond the limits, so that one client cannot take all there are. */
export function limitConnections(limits: ConnectionLimits): OpenConnections {
  const { maxConnections, maxConnectionsPerPeer, peerOf } = limits
  const open = new Set<Socket>()
  const byPeer = new Map<string, number>()

  const leave = (socket: Socket, peer: string | undefined): void => {
    open.delete(socket)
    if (peer === undefined) return
    const left = (byPeer.get(peer) ?? 1) - 1
    if (left === 0) byPeer.delete(peer)
    else byPeer.set(peer, left)
  }

  const admit = (socket: Socket): void => {
    const peer = maxConnectionsPerPeer === 0 ? undefined : peerOf(socket)
    const ofPeer = peer === undefined ? 0 : (byPeer.get(peer) ?? 0)
    if (open.size >= maxConnections || (peer !== undefined && ofPeer >= maxConnectionsPerPeer)) {
      socket.destroy()
      return
    }
    open.add(socket)
    if (peer !== undefined) byPeer.set(peer, ofPeer + 1)
    socket.once('close', () => leave(socket, peer))
  }

  return {
    watch(server) {
      // Closes what is beyond the total before any work is done on it; not enough alone: each server counts its own.
      server.maxConnections = maxConnections
      server.on('connection', admit)
    },
    destroy() {
      for (const socket of open) socket.destroy()
    },
  }
}
