import type { Socket } from 'node:net'
import { type ClientHello, ClientHelloReader } from './client-hello.ts'

/** Longest first message of TLS with the heads of its records, bytes. */
const longestHello = 16_384

/**
 * Waits for the first message of a TLS client. Then the socket is paused, and what was read is for the caller to put back.
 *
 * @returns stops the wait
 */
export function awaitHello(socket: Socket, done: (hello: ClientHello, read: Buffer) => void): () => void {
  const reader = new ClientHelloReader()
  const onData = (piece: Buffer): void => {
    const hello = reader.add(piece)
    const { bytes } = reader
    if (hello === undefined && bytes.length <= longestHello) return
    stop()
    socket.pause()
    done(hello ?? 'malformed', bytes)
  }
  const stop = (): unknown => socket.off('data', onData)
  socket.on('data', onData)
  return stop
}
