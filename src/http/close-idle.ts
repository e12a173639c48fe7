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

interface SizeSamples extends Slotted {
  readonly socket: Socket
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
  const connections = new SlotList<SizeSamples>()
  server.on('connection', (socket: Socket) => {
    const samples: SizeSamples = { socket, slot: -1, bytes: 0, times: 0 }
    connections.add(samples)
    socket.once('close', () => connections.remove(samples))
  })
  const timer = setInterval(() => {
    for (const samples of connections.all()) {
      const { socket } = samples
      if (carriers.has(socket)) {
        connections.remove(samples)
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
