import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { SlotList, type Slotted } from '../base/slot-list.ts'
import { sentBytes } from './sent-bytes.ts'

/** Number of checks without progress after which a connection counts as idle. */
const looks = 4

/** Connections of calls that wait for a person: they are idle but healthy. */
export const waitingForReview = new WeakSet<Socket>()

/** Connections that carry connections of another server, which checks them. */
const carriers = new WeakSet<Socket>()
export const noteCarrier = (socket: Socket): unknown => carriers.add(socket)

/** A connection, and what had passed over it at the last check. */
export interface OpenConnection extends Slotted {
  readonly socket: Socket
  /** By which it is counted. */
  peer: string | undefined
  bytes: number
  /** Checks since then. */
  times: number
}

/** Counts the connections of a server. */
interface Admission {
  /** False when it is refused, and closed. */
  admit(connection: OpenConnection): boolean
  /** An admitted connection is closed. */
  leave(connection: OpenConnection): void
}

/**
 * Follows the connections of a server from their beginning to their end, with one listener for each end. Those that are idle are
 * closed: of clients that stop reading, or have vanished. Checking all connections from time to time costs the requests
 * nothing; a timer for each would.
 *
 * @param idleMs longest time without a byte either way
 * @returns those that are open
 */
export function followConnections(server: Server, idleMs: number, admission?: Admission): SlotList<OpenConnection> {
  const open = new SlotList<OpenConnection>()
  server.on('connection', (socket: Socket) => {
    const connection: OpenConnection = { socket, peer: undefined, slot: -1, bytes: 0, times: 0 }
    const isAdmitted = admission?.admit(connection) ?? true
    if (isAdmitted) open.add(connection)
    socket.on('close', () => {
      if (isAdmitted) {
        open.remove(connection)
        admission?.leave(connection)
      }
      strip(socket)
    })
  })
  // Of TLS there are two sockets, and node serves the second.
  server.on('secureConnection', (socket: Socket) => socket.on('close', () => strip(socket)))
  const timer = setInterval(() => {
    for (const connection of open.all()) if (isIdle(connection)) connection.socket.destroy()
  }, idleMs / looks).unref()
  server.once('close', () => clearInterval(timer))
  return open
}

function isIdle(connection: OpenConnection): boolean {
  const { socket } = connection
  if (carriers.has(socket)) return false
  const bytes = socket.bytesRead + sentBytes(socket)
  connection.times = bytes === connection.bytes && !waitingForReview.has(socket) ? connection.times + 1 : 0
  connection.bytes = bytes
  return connection.times >= looks
}

/**
 * Takes the listeners from a closed connection. Those of node lead from a closed socket to the parser that later connections use:
 * once one such socket is in the old generation, all that follow outlive the small collections, 1.6 KiB each. The listeners of
 * the event that is being emitted are still called.
 */
function strip(socket: Socket): void {
  // An error without a listener would end the process.
  socket.removeAllListeners().on('error', ignore)
}

function ignore(): void {}
