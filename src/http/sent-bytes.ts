import type { Socket } from 'node:net'

/** Node keeps here how much of what it was given to write the system has not taken. */
interface Writing {
  readonly _handle?: { readonly writeQueueSize?: number } | null
}

/**
 * Bytes that the system has taken to send. It moves as the other side reads, also while one large write is under way,
 * which `bytesWritten` counts as a whole when it begins.
 */
export function sentBytes(socket: Socket & Writing): number {
  return socket.bytesWritten - socket.writableLength - (socket._handle?.writeQueueSize ?? 0)
}
