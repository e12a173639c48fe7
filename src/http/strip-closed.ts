import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Takes the listeners from closed connections. Those of node lead from a closed socket to the parser that later connections use:
 * once one such socket is in the old generation, all that follow outlive the small collections, 1.6 KiB each.
 */
export function stripClosed(server: Server): void {
  const strip = (socket: Socket): unknown => socket.on('close', removeListeners)
  // Of TLS there are two sockets, and node serves the second.
  server.on('connection', strip).on('secureConnection', strip)
}

/** The listeners of the event that is being emitted are still called. */
function removeListeners(this: Socket): void {
  // An error without a listener would end the process.
  this.removeAllListeners().on('error', ignore)
}

function ignore(): void {}
