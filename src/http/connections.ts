import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { SlotList, type Slotted } from '../base/slot-list.ts'
import type { Quota } from '../limits/quota.ts'
import { isUnixPeer } from './unix-socket.ts'

type ConnectionBound = 'connections' | 'address_connections'

export interface ConnectionLimits {
  readonly maxConnections: number
  /** Counts connections of all threads. */
  readonly count: Pick<Quota<ConnectionBound>, 'take' | 'give'>
  /** Called for each connection that a limit refuses; `peer` is undefined where the address is not known. */
  readonly onRefused: (bound: ConnectionBound, peer: string | undefined) => void
  /** Key by which connections are counted; connections without one count in the total only. */
  readonly peerOf: (socket: Socket) => string | undefined
}

/** The open connections of all servers, counted together. */
export interface OpenConnections {
  /** Counts the connections of this server too. */
  watch(server: Server): void
  /** Closes all of them, also those without a request. */
  destroy(): void
}

interface OpenConnection extends Slotted {
  readonly socket: Socket
}

/** Closes connections beyond the limits, so that one client cannot take all of them. */
export function limitConnections(limits: ConnectionLimits): OpenConnections {
  const { maxConnections, count, peerOf, onRefused } = limits
  const open = new SlotList<OpenConnection>()

  const admit = (socket: Socket): unknown => {
    const peer = peerOf(socket)
    if (isGone(socket)) return socket.destroy()
    const bound = count.take(peer, 1)
    if (bound !== undefined) {
      onRefused(bound, peer)
      return socket.destroy()
    }
    const connection = { socket, slot: -1 }
    open.add(connection)
    return socket.once('close', () => {
      open.remove(connection)
      count.give(peer, 1)
    })
  }

  return {
    watch(server) {
      // Closes connections beyond the total before any work is done; not enough alone, since each server counts its own.
      server.maxConnections = maxConnections
      server.on('drop', data => onRefused('connections', data?.remoteAddress))
      server.on('connection', admit)
      // The TLS socket above it asks the system for the address again, and caches it.
      server.prependListener('secureConnection', (socket: Socket) => {
        if (isGone(socket)) socket.destroy()
      })
    },
    destroy() {
      for (const { socket } of open.all()) socket.destroy()
    },
  }
}

/**
 * Whether the client has already reset its connection. Its request could still be read, but without an address, so a rule
 * that denies by address would not apply.
 */
function isGone(socket: Socket): boolean {
  return socket.remoteAddress === undefined && !isUnixPeer(socket)
}
