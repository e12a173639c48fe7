import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Node keeps here the TCP connection below a TLS connection. Its types do not show it; a test checks that it is so. */
type Layered = Duplex & { readonly _parent?: unknown }

/**
 * Closes a connection at once. Over TCP, also below TLS, that is a reset: otherwise unread bytes would stay in the memory of
 * the system for minutes, and a truncated answer could look complete. A unix socket has no reset.
 *
 * A TLS connection then closes by itself. Do not destroy it in the same turn: where that is a callback of OpenSSL, such as
 * `secure`, node 26 frees what OpenSSL still uses, and the process ends.
 */
export function resetConnection(connection: Layered): void {
  const lower = 'encrypted' in connection ? connection._parent : connection
  if (lower instanceof Socket && lower.remoteAddress !== undefined) lower.resetAndDestroy()
  else connection.destroy()
}
