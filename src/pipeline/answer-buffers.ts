/**
 * Memory that pieces of answers are copied into on their way to the client. It is used again: fresh memory for each
 * piece costs more than the copy, since the system must clear its pages first and V8 must collect it later.
 */

/** One full read of an upstream connection, 64 KiB, with its framing as a chunk. */
export const answerBufferBytes = 65_536 + 16

/** Buffers that this thread keeps: 2 MiB. More are in use only while many clients are slow. */
const mostKept = 32
const free: Buffer[] = []

/** Its old content must not leave: only bytes written since may be sent. */
export function takeBuffer(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(answerBufferBytes)
}

/** Call it once for each buffer taken, when nothing reads it any more. Buffers that are never given back are collected. */
export function giveBuffer(buffer: Buffer): void {
  if (free.length < mostKept) free.push(buffer)
}
