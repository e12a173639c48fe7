import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { sentBytes } from './sent-bytes.ts'

/** Number of checks without progress after which a connection counts as idle. */
const looks = 4

/** Connections of calls that wait for a person: they are idle but healthy. */
export const waitingForReview = new WeakSet<Socket>()

/** Connections that carry connections of another server, which checks them. */
const carriers = new WeakSet<Socket>()
export const noteCarrier = (socket: Socket): unknown => carriers.add(socket)

interface SizeSamples {
  bytes: number
  times: number
}

/**
 * Closes idle connections: of clients that stop reading, or have vanished. Checking all connections from time to time costs
 * the requests nothing; a timer for each would.
 *
 * @param idleMs longest time without a byte either way
 */
export function closeIdle(server: Server, idleMs: number): void {
  const connections = new Map<Socket, SizeSamples>()
  server.on('connection', (socket: Socket) => {
    connections.set(socket, { bytes: 0, times: 0 })
    socket.once('close', () => connections.delete(socket))
  })
  const timer = setInterval(() => {
    for (const [socket, samples] of connections) {
      if (carriers.has(socket)) {
        connections.delete(socket)
        continue
      }
      const bytes = socket.bytesRead + sentBytes(socket)
      samples.times = bytes === samples.bytes && !waitingForReview.has(socket) ? samples.times + 1 : 0
      samples.bytes = bytes
      if (samples.times >= looks) socket.destroy()
    }
  }, idleMs / looks).unref()
  server.once('close', () => clearInterval(timer))
}
