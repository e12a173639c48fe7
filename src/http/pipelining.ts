/**
 * Requests that a client sends before it has the answers (pipelining). Node parses all bytes of one read: 64 KiB are up to
 * 2,000 requests, and each takes some kilobytes of memory. Here a connection is parsed only until `mostAhead` requests wait;
 * the other bytes go back to the socket until those were served.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { resetConnection } from './reset.ts'
import { sentBytes } from './sent-bytes.ts'

/** Node's own parser of a connection, which its types do not show. Tests check that it works as described here. */
interface Parser {
  /** Called with each head. The result directs llhttp: 0 means go on as usual. */
  onIncoming?: ((req: PipelinedRequest, keepAlive: boolean) => number) | null
  execute(bytes: Buffer): unknown
  resume(): void
}

/** After `onIncoming` node knows whether the request takes over its connection. */
type PipelinedRequest = IncomingMessage & { readonly upgrade?: boolean | null }

type ClientSocket = Socket & {
  /** While it is set, nothing in node resumes the socket. */
  _paused?: boolean
  readonly parser?: Parser | null
  /** The answer that is being sent. */
  readonly _httpMessage?: ServerResponse | null
}

/** Error that node passes to `clientError`. */
export interface ParserError extends NodeJS.ErrnoException {
  /** The bytes that were read, and how many of them were parsed. */
  readonly rawPacket?: Buffer
  readonly bytesParsed?: number
}

interface Ahead {
  /** Requests that were not served yet. */
  waiting: number
  sent: number
  /** Set while nothing more is read. */
  stall: NodeJS.Timeout | undefined
  readonly stallMs: number
  /** Until there is a listener for `data`, node bypasses the stream of a socket, and bytes cannot be put back. */
  readsStream: boolean
}

/** Requests that may wait behind the one that is being answered. */
const maxAhead = 16
/** llhttp's HPE_PAUSED: stop after this head. */
const pauseParser = 21
const noBytes = Buffer.alloc(0)

const aheads = new WeakMap<Duplex, Ahead>()

/**
 * Calls back when the earlier answers are sent. Each request begins in a separate round of the event loop, so that other
 * connections are served in between.
 *
 * @param res answer of a request that came while the one before was not answered yet
 * @param stallMs a client with too many requests ahead that takes nothing for this time is disconnected
 */
export function awaitTurn(socket: ClientSocket, res: ServerResponse, stallMs: number, onTurn: () => void): void {
  const ahead = aheads.get(socket) ?? limitAhead(socket, stallMs)
  ahead.waiting += 1
  res.once('socket', () => {
    ahead.waiting -= 1
    // The body of this request may be among the bytes that were put back.
    if (ahead.waiting === 0 && ahead.stall !== undefined) readOn(socket, ahead)
    setImmediate(() => {
      if (!socket.destroyed) onTurn()
    })
  })
}

/**
 * Calls back when the answers before a request that takes its connection over are sent; never if they end the connection.
 * Node gives the connection away before that. After that node no longer resumes the earlier answers, closes no connection
 * that the client has closed, and handles no error: a reset would end the process. Until then the client can send as much as
 * the socket buffers.
 */
export function awaitAnswers(socket: ClientSocket, onTurn: () => void): void {
  socket.on('error', () => socket.destroy())
  if (!socket._httpMessage) {
    onTurn()
    return
  }
  const goOn = (): void => {
    const answer = socket._httpMessage
    if (answer?.writableNeedDrain) answer.emit('drain')
  }
  const leave = (): unknown => socket.end()
  const awaitLast = (): void => {
    if (socket._httpMessage) socket._httpMessage.once('finish', awaitLast)
    else {
      socket.off('drain', goOn).off('end', leave)
      setImmediate(() => {
        if (socket.writable) onTurn()
      })
    }
  }
  socket.on('drain', goOn).on('end', leave)
  awaitLast()
}

/** Makes the parser stop with an error when too many requests wait: `putBack` handles it. */
function limitAhead(socket: ClientSocket, stallMs: number): Ahead {
  const ahead: Ahead = { waiting: 0, sent: 0, stall: undefined, stallMs, readsStream: false }
  aheads.set(socket, ahead)
  socket.once('close', () => clearInterval(ahead.stall))
  const { parser } = socket
  const onIncoming = parser?.onIncoming
  if (parser && onIncoming) {
    const limited: typeof onIncoming = (req, keepAlive) => {
      const next = onIncoming(req, keepAlive)
      // Nothing is parsed after a request that takes over the connection.
      return next === 0 && !req.upgrade && ahead.waiting >= maxAhead ? pauseParser : next
    }
    parser.onIncoming = limited
  }
  return ahead
}

/** Puts back the bytes that are not parsed yet. False for other errors. */
export function putBack(error: ParserError, socket: ClientSocket): boolean {
  const ahead = aheads.get(socket)
  if (ahead === undefined || error.code !== 'HPE_PAUSED' || error.rawPacket === undefined) return false
  // First of all: node would not resume a socket that was paused while it bypassed the stream.
  if (!ahead.readsStream) socket.on('data', () => {})
  ahead.readsStream = true
  socket._paused = true
  socket.pause()
  socket.unshift(error.rawPacket.subarray(error.bytesParsed))
  ahead.sent = sentBytes(socket)
  clearInterval(ahead.stall)
  ahead.stall = setInterval(cutStalled, ahead.stallMs, socket, ahead).unref()
  return true
}

function cutStalled(socket: ClientSocket, ahead: Ahead): void {
  const sent = sentBytes(socket)
  if (sent === ahead.sent && socket.writableLength > 0) resetConnection(socket)
  ahead.sent = sent
}

function readOn(socket: ClientSocket, ahead: Ahead): void {
  clearInterval(ahead.stall)
  ahead.stall = undefined
  socket._paused = false
  socket.parser?.resume()
  // A request without a body ends here; nothing else may come that would let the parser notice.
  socket.parser?.execute(noBytes)
  socket.resume()
}
