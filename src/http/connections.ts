import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { isUnixPeer } from './unix-socket.ts'

type ConnectionBound = 'connections' | 'address_connections'

export interface ConnectionLimits {
  readonly maxConnections: number
  /** Counts a connection, here and elsewhere. `enter` returns the limit that leaves no room for it. */
  readonly count: {
    enter(peer: string | undefined): ConnectionBound | undefined
    leave(peer: string | undefined): void
  }
  /** Called for each connection that a limit refuses; `peer` is undefined where the address is not known. */
  readonly onRefused: (bound: ConnectionBound, peer: string | undefined) => void
  /** Key by which connections are counted; connections without one count in the total only. */
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
  const { maxConnections, count, peerOf, onRefused } = limits
  const open = new Set<Socket>()

  const admit = (socket: Socket): unknown => {
    const peer = peerOf(socket)
    if (isGone(socket)) return socket.destroy()
    const bound = count.enter(peer)
    if (bound !== undefined) {
      onRefused(bound, peer)
      return socket.destroy()
    }
    open.add(socket)
    return socket.once('close', () => {
      open.delete(socket)
      count.leave(peer)
    })
  }

  return {
    watch(server) {
      // Closes what is beyond the total before any work is done on it; not enough alone: each server counts its own.
      server.maxConnections = maxConnections
      server.on('drop', data => onRefused('connections', data?.remoteAddress))
      server.on('connection', admit)
      // TLS puts a socket of its own on top, which asks the system for the address again, and keeps it.
      server.prependListener('secureConnection', (socket: Socket) => {
        if (isGone(socket)) socket.destroy()
      })
    },
    destroy() {
      for (const socket of open) socket.destroy()
    },
  }
}

/**
 * Whether the client has reset its connection already. What it sent could still be read; but it has no address any more,
 * and a rule that refuses by address would let the request pass.
 */
function isGone(socket: Socket): boolean {
  return socket.remoteAddress === undefined && !isUnixPeer(socket)
}
