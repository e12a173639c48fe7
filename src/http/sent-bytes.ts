import type { Socket } from 'node:net'

/** Node keeps here how many bytes of a write the system has not accepted yet. */
interface Writing {
  readonly _handle?: { readonly writeQueueSize?: number } | null
}

/**
 * Bytes that the system has taken to send. The number grows as the other side reads, also during one large write, which
 * `bytesWritten` counts as a whole when it begins.
 */
export function sentBytes(socket: Socket & Writing): number {
  return socket.bytesWritten - socket.writableLength - (socket._handle?.writeQueueSize ?? 0)
}
