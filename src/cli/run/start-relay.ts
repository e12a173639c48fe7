import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Relay } from './relay.ts'

/** More than an agent may have at the gateway. */
const maxConnections = 1_024

/** Serves a relay on a free port of the loopback interface. */
export async function startRelay(relay: Relay) {
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, socket => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    relay(socket)
  })
  server.maxConnections = maxConnections
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    // It listens on TCP, so it has a port.
    port: (server.address() as AddressInfo).port,
    /** Cuts off what is under way: programs that were left running call no more. */
    close() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}
