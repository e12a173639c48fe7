import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/**
 * Closes a connection at once. Over TCP that is a reset: what the client has not taken would otherwise stay in the memory
 * of the system, which offers it for minutes, and a cut answer could look whole. Over TLS the missing farewell says the
 * same; a unix socket has neither.
 */
export function resetConnection(connection: Duplex): void {
  const isPlainTcp =
    connection instanceof Socket && connection.remoteAddress !== undefined && !('encrypted' in connection)
  if (isPlainTcp) connection.resetAndDestroy()
  else connection.destroy()
}
