import { randomBytes } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RefusalCode } from '../base/refusal-kinds.ts'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import type { Addressing } from './addressing.ts'
import { CarriedConnection } from './connection-pair.ts'
import { type RequestFields, readFields } from './headers.ts'
import { ServerResponse as NodeResponse } from './node-http.ts'
import { awaitAnswers, awaitTurn, type ParserError, putBack } from './pipelining.ts'
import type { RequestRoute } from './request-line.ts'
import { sendRefusal } from './respond.ts'
import { refuseTunnel, refuseUnreadable } from './unreadable.ts'

/** A request whose head is read and whose framing is valid. */
export interface Incoming {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  readonly fields: RequestFields
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean
  /** The request has taken over its connection for a WebSocket. */
  readonly isUpgraded: boolean
}

export interface ProxyIncoming extends Incoming {
  /** Raw text of the upstream URL: the rest after `/proxy/`, or the upstream of a virtual host and the path. */
  readonly rawTarget: string
  readonly addressing: Addressing
}

export interface AcceptOptions {
  /** Time limit for the whole body of a call of the gateway's own API. */
  readonly bodyTimeoutMs: number
  /** Pseudonym in `Via` that marks the gateway's own requests; undefined when loops are not detected. */
  readonly viaName: string | undefined
  /** Routes a request. @param host its `Host` field */
  readonly routeOf: (url: string, host: string, socket: Socket) => RequestRoute | Refusal
  /** Routes CONNECT; absent where no tunnels are opened. */
  readonly connectTo?: ((authority: string) => RequestRoute | Refusal) | undefined
  /** Called for bytes that cannot be parsed, when all earlier requests of the connection were answered. */
  readonly onUnreadable?: ((socket: Socket) => void) | undefined
  /** Whether WebSockets may be opened to any host. */
  readonly takesWebSockets: boolean
  /** Requests for upstreams: `rawTarget` is the raw text of the upstream URL. */
  readonly onProxy: (incoming: ProxyIncoming) => Promise<void> | undefined
  /** Everything else: `path` is path and query as received. */
  readonly onManagement: (incoming: Incoming & { readonly path: string }) => Promise<void>
  readonly report: (what: string, error: unknown) => void
  /** Called for requests that never reach a handler; undefined when nothing is counted. */
  readonly counts: AcceptCounts
}

export interface AcceptCounts {
  /** A request was refused for its head alone. */
  refused(code: RefusalCode): void
}

/** Handles the requests of all servers. */
export type Acceptor = ReturnType<typeof createAcceptor>

const refusedMethods = new Set(['TRACE', 'CONNECT'])
/** An answer 426 names the protocols to use instead (RFC 9110 section 15.5.22). */
const noWebSocket = refuse('websocket_not_supported', undefined, { headers: ['Upgrade', 'HTTP/1.1'] })
const notForBrowsers = refuse('browser_refused')
/** A body would make it unclear where the tunnel begins (RFC 9110 section 9.3.6). */
const connectBody = refuse('invalid_request', 'CONNECT must have neither Content-Length nor Transfer-Encoding.')
const methodNotAllowed = refuse('method_not_allowed', undefined, {
  headers: ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
})

/** Checks request heads as RFC 9112 requires, where node is lenient, and dispatches them. */
export function createAcceptor(options: AcceptOptions) {
  const nextId = createRequestIds()
  let draining = false

  const receive = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void => {
    // The answer of a pipelined request has no socket before its turn comes. The request waits until then: a thousand
    // of them at once would be a thousand calls of the store.
    if (res.socket !== null) take(req, res, expectsContinue)
    else awaitTurn(req.socket, res, options.bodyTimeoutMs, () => take(req, res, expectsContinue))
  }

  const take = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean, isUpgraded = false): void => {
    const requestId = nextId()
    if (draining) res.shouldKeepAlive = false
    const fail = (error: unknown): void => {
      options.report('a request failed', error)
      sendRefusal(res, refuse('internal'), requestId)
    }
    try {
      const taken = dispatch({ req, res, requestId, expectsContinue, isUpgraded }, options)
      if (taken instanceof Promise) taken.catch(fail)
      else if (taken !== undefined) options.counts.refused(taken)
    } catch (error) {
      fail(error)
    }
  }

  return {
    serve(server: Server) {
      server.on('request', (req, res) => receive(req, res, false))
      server.on('checkContinue', (req, res) => receive(req, res, true))
      server.on('checkExpectation', (_req, res) => sendRefusal(res, refuse('expectation_failed'), nextId()))
      server.on('upgrade', (req, _, head) => {
        awaitAnswers(req.socket, () => take(req, responseOn(req, head), false, true))
      })
      server.on('connect', (req, _, head) => {
        const { socket } = req
        awaitAnswers(socket, () => {
          if (options.connectTo === undefined) refuseTunnel(socket, nextId())
          else if (draining) sendRefusal(responseOn(req, head), refuse('draining'), nextId())
          else take(req, responseOn(req, head), false, true)
        })
      })
      server.on('clientError', (error: ParserError, socket: Socket) => {
        if (putBack(error, socket)) return
        const code = refuseUnreadable(error, socket, nextId())
        if (code === undefined) return
        options.counts.refused(code)
        options.onUnreadable?.(socket)
      })
    },
    /** Whether a request takes its connection over for a WebSocket. */
    upgrades: (req: IncomingMessage) => options.takesWebSockets && asksForWebSocket(req, options.routeOf),
    /** From now on each connection closes after the current answer. */
    drain() {
      draining = true
    },
  }
}

/** Other requests that ask for another protocol are answered as if they did not; malformed handshakes too. */
function asksForWebSocket(
  { method, url = '', headers, socket }: IncomingMessage,
  routeOf: AcceptOptions['routeOf'],
): boolean {
  if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') return false
  // Before the body has arrived, node would give a stream that is not the connection.
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) return false
  const route = routeOf(url, headers.host ?? '', socket)
  return !isRefusal(route) && route.kind === 'proxy'
}

/** The answer to a request that has taken its connection over. */
function responseOn(req: IncomingMessage, head: Buffer): ServerResponse {
  const { socket } = req
  if (head.length > 0) socket.unshift(head)
  const res = new NodeResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(socket)
  res.on('finish', () => socket.destroySoon())
  return res
}

type ArrivedRequest = Omit<Incoming, 'fields'>

/** Returns the code of the refusal when the request is refused here; otherwise its handler takes it. */
function dispatch(arrived: ArrivedRequest, options: AcceptOptions): Promise<void> | RefusalCode | undefined {
  const { req, res, requestId, expectsContinue, isUpgraded } = arrived
  const fields = readFields(req.rawHeaders, req.httpVersion)
  if (isRefusal(fields)) return closeWith(arrived, fields)
  const { connectTo } = options
  const isConnect = req.method === 'CONNECT' && connectTo !== undefined
  if (refusedMethods.has(req.method ?? '') && !isConnect) return answer(arrived, methodNotAllowed)
  if (isConnect && fields.contentLength !== 0) return closeWith(arrived, connectBody)
  if (options.viaName !== undefined && fields.via.includes(options.viaName) && isOwnVia(fields.via, options.viaName)) {
    return answer(arrived, refuse('loop_detected'))
  }
  // Node reads nothing after such a request: it must be the last one on its connection.
  if (fields.upgrade) res.shouldKeepAlive = false
  const url = req.url ?? ''
  const route = isConnect ? connectTo(url) : options.routeOf(url, fields.host, req.socket)
  if (isRefusal(route)) return answer(arrived, route)
  if (route.kind === 'proxy') {
    if (fields.webSocket && !options.takesWebSockets) return answer(arrived, noWebSocket)
    const { rawTarget, addressing } = route
    if (fields.isLoad && addressing.sharesOrigin) return answer(arrived, notForBrowsers)
    const incoming = {
      req,
      res,
      requestId,
      expectsContinue,
      isUpgraded,
      fields,
      rawTarget,
      addressing,
    }
    return options.onProxy(incoming)
  }
  if (fields.contentLength !== 0) limitBody(arrived, options.bodyTimeoutMs)
  return options.onManagement({ req, res, requestId, expectsContinue, isUpgraded, fields, path: route.path })
}

/** Closes the connection of a body that arrives too slowly, answered or not. */
function limitBody(arrived: ArrivedRequest, limitMs: number): void {
  const { req, res } = arrived
  if (req.complete) return
  const timer = setTimeout(() => {
    if (res.writableEnded) req.socket.destroy()
    else closeWith(arrived, refuse('request_timeout'))
  }, limitMs)
  // Node emits nothing for a request that was answered before its body arrived: its timer must not keep the process alive.
  timer.unref()
  const done = () => clearTimeout(timer)
  req.once('end', done).once('close', done)
}

/** Answers an invalid head. The end of its body is unknown, so nothing after it is read. */
function closeWith(arrived: ArrivedRequest, refusal: Refusal): RefusalCode {
  arrived.res.shouldKeepAlive = false
  return answer(arrived, refusal)
}

function answer({ res, requestId }: ArrivedRequest, refusal: Refusal): RefusalCode {
  sendRefusal(res, refusal, requestId)
  return refusal.refusal
}

/** Whether one of the received-by parts is our pseudonym (RFC 9110 section 7.6.3). */
function isOwnVia(via: string, name: string): boolean {
  return via.split(',').some(part => part.trim().split(/\s+/)[1] === name)
}

/** The version of HTTP in which the client sent a request, as `Via` has it (RFC 9110 section 7.6.3). */
export function receivedVersion({ socket, httpVersion }: ReceivedRequest): string {
  return socket instanceof CarriedConnection ? '2' : httpVersion
}

interface ReceivedRequest {
  readonly socket: object
  readonly httpVersion: string
}

/** Ids that are unique across restarts and threads, and cheap: a random start and a counter. */
function createRequestIds(): () => string {
  const start = randomBytes(9).toString('base64url')
  let count = 0
  return () => `${start}-${(count++).toString(36)}`
}
