import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { sentBytes } from './sent-bytes.ts'

/** Number of checks of a connection before it counts as quiet. */
const looks = 4

/** Connections of calls that wait for a person: nothing moves on them, and they are sound. */
export const waitingForReview = new WeakSet<Socket>()

interface Seen {
  bytes: number
  times: number
}

/**
 * Closes connections on which nothing moves: clients that stop reading, or have vanished. Checking all connections from time
 * to time costs the requests nothing; a timer for each would.
 *
 * @param quietMs longest time without a byte either way
 */
export function closeQuiet(server: Server, quietMs: number): void {
  const connections = new Map<Socket, Seen>()
  server.on('connection', (socket: Socket) => {
    connections.set(socket, { bytes: 0, times: 0 })
    socket.once('close', () => connections.delete(socket))
  })
  const timer = setInterval(() => {
    for (const [socket, seen] of connections) {
      const bytes = socket.bytesRead + sentBytes(socket)
      seen.times = bytes === seen.bytes && !waitingForReview.has(socket) ? seen.times + 1 : 0
      seen.bytes = bytes
      if (seen.times >= looks) socket.destroy()
    }
  }, quietMs / looks).unref()
  server.once('close', () => clearInterval(timer))
}
