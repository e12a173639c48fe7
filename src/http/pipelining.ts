import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { sentBytes } from './sent-bytes.ts'

/** Node keeps here whether a connection is read, and what reads it. */
interface Reading {
  _paused?: boolean
  readonly parser?: { resume(): void } | null
}

interface Ahead {
  requests: number
  sent: number
  timer: NodeJS.Timeout | undefined
}

/** Requests that may wait behind the one that is being answered. */
const mostAhead = 16

const waiting = new WeakMap<Socket, Ahead>()

/**
 * Stops reading a connection on which too many requests wait for their turn to be answered: node reads on as long as
 * nothing is written, and each request takes some kilobytes. What came with them, 64 KiB at most, still counts. A client
 * that takes nothing meanwhile is cut off.
 *
 * @param res answer of a request that came while the one before was not answered yet
 * @param stallMs longest time in which such a client may take nothing
 */
export function holdBack(socket: Socket & Reading, res: ServerResponse, stallMs: number): void {
  const ahead = waiting.get(socket) ?? { requests: 0, sent: 0, timer: undefined }
  waiting.set(socket, ahead)
  ahead.requests += 1
  if (ahead.requests >= mostAhead && ahead.timer === undefined) pause(socket, ahead, stallMs)
  res.once('close', () => {
    ahead.requests -= 1
    if (ahead.requests === 0 && ahead.timer !== undefined) resume(socket, ahead)
  })
}

function pause(socket: Socket & Reading, ahead: Ahead, stallMs: number): void {
  // Without the mark node would go on reading when the next body has ended.
  socket._paused = true
  socket.pause()
  ahead.sent = sentBytes(socket)
  ahead.timer = setInterval(() => {
    const sent = sentBytes(socket)
    if (sent === ahead.sent) socket.destroy()
    ahead.sent = sent
  }, stallMs).unref()
  socket.once('close', () => clearInterval(ahead.timer))
}

function resume(socket: Socket & Reading, ahead: Ahead): void {
  clearInterval(ahead.timer)
  ahead.timer = undefined
  socket._paused = false
  socket.parser?.resume()
  socket.resume()
}
