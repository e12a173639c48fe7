import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { SlotList } from '../base/slot-list.ts'
import type { Quota } from '../limits/quota.ts'
import { followConnections, type OpenConnection } from './follow-connections.ts'
import { isUnixPeer } from './unix-socket.ts'

type ConnectionBound = 'connections' | 'address_connections'

export interface ConnectionLimits {
  readonly maxConnections: number
  /** A connection that is idle for so long is closed. */
  readonly idleMs: number
  /** Counts connections of all threads. */
  readonly count: Pick<Quota<ConnectionBound>, 'take' | 'give'>
  /** Called when a connection was opened (1) or closed (-1). */
  readonly onChange: (change: 1 | -1) => void
  /** Called for each connection that a limit refuses; `peer` is undefined where the address is not known. */
  readonly onRefused: (bound: ConnectionBound, peer: string | undefined) => void
  /** Key by which connections are counted; connections without one count in the total only. */
  readonly peerOf: (socket: Socket) => string | undefined
}

/** Closes connections of all servers beyond the limits together, so that one client cannot take all of them. */
export function limitConnections(limits: ConnectionLimits) {
  const { maxConnections, idleMs, count, onChange, peerOf, onRefused } = limits
  const open: SlotList<OpenConnection>[] = []

  const admit = (connection: OpenConnection): boolean => {
    const { socket } = connection
    const peer = peerOf(socket)
    const bound = isGone(socket) ? 'gone' : count.take(peer, 1)
    if (bound === undefined) {
      connection.peer = peer
      onChange(1)
      return true
    }
    if (bound !== 'gone') onRefused(bound, peer)
    socket.destroy()
    return false
  }

  const leave = ({ peer }: OpenConnection): void => {
    count.give(peer, 1)
    onChange(-1)
  }

  return {
    /** Counts the connections of this server too. */
    watch(server: Server) {
      // Closes connections beyond the total before any work is done; not enough alone, since each server counts its own.
      server.maxConnections = maxConnections
      server.on('drop', data => onRefused('connections', data?.remoteAddress))
      open.push(followConnections(server, idleMs, { admit, leave }))
      // The TLS socket above it asks the system for the address again, and caches it.
      server.prependListener('secureConnection', (socket: Socket) => {
        if (isGone(socket)) socket.destroy()
      })
    },
    /** Follows those of a server for connections that are accepted, and counted, elsewhere. */
    adopt: (server: Server) => void followConnections(server, idleMs),
    /** Closes all that are counted, also those without a request. */
    destroy() {
      for (const list of open) for (const { socket } of list.all()) socket.destroy()
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
