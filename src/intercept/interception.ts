/**
 * Connections of CONNECT that the gateway reads. It presents a leaf for the host that CONNECT named, and hands the plain side
 * on as a connection of HTTP/1.1, or as one for each request of HTTP/2. A client may also speak HTTP in the clear.
 */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { asError } from '../base/as-error.ts'
import { noteCarrier } from '../http/follow-connections.ts'
import { Http2Connection, type Http2Limits } from '../http/http2-session.ts'
import { type ConnectTunnel, setTunnel } from '../http/own-urls.ts'
import { markSamePeer } from '../http/unix-socket.ts'
import type { Clock } from '../runtime/clock.ts'
import { awaitHello } from './await-hello.ts'
import type { ClientHello } from './client-hello.ts'
import type { CurrentLeafs } from './current-leafs.ts'
import type { OpenedHosts } from './opened-hosts.ts'

export interface InterceptionParts {
  readonly leafs: Pick<CurrentLeafs, 'contextFor' | 'permits'>
  readonly hosts: OpenedHosts
  readonly clock: Pick<Clock, 'steady'>
  /** `firstMs` is also the longest time until the first request can be read. */
  readonly limits: Http2Limits
  readonly onHandshake: (isResumed: boolean) => void
  /** @param reason for people */
  readonly onFailed: (tunnel: NamedTunnel, reason: string) => void
  /** The client has cancelled too many requests, and its connection was closed. */
  readonly onResets: (tunnel: NamedTunnel) => void
}

/** A tunnel, as the log names it. */
export type NamedTunnel = Pick<ConnectTunnel, 'id' | 'agentId' | 'origin'>

export type Interception = ReturnType<typeof createInterception>

/** The answer to a CONNECT that opens a tunnel. */
export const established = 'HTTP/1.1 200 Connection established\r\n\r\n'
/** First byte of a TLS handshake (RFC 8446 section 5.1). */
const handshakeByte = 0x16
/** Less than the first buffer of node's TLS has room for (1,024). */
const pieceBytes = 1_000
/** A client that closes so soon after the handshake, without a request, has not liked the certificate, milliseconds. */
const soonMs = 1_000

export function createInterception(parts: InterceptionParts) {
  let adopt = (_: Duplex): void => {
    throw new Error('cannot happen: a tunnel before the gateway serves')
  }
  const openings = new Set<Socket>()
  const http2 = new Set<Http2Connection>()
  let isDraining = false
  return {
    hosts: parts.hosts,
    /** Tells of a tunnel that was closed for what it carries. */
    failed: parts.onFailed,
    permits: (host: string) => parts.leafs.permits(host),
    /** Takes the plain sides. Called once, before the first `open`. */
    serve(taker: (connection: Duplex) => void) {
      adopt = taker
    },
    /** Tells of bytes in a tunnel that are no request. */
    notHttp: (tunnel: ConnectTunnel) => fail(tunnel, 'not http', parts),
    /** Closes the tunnels that carry no connection of HTTP yet, and opens no more. Those with HTTP/2 take no more requests. */
    drain() {
      isDraining = true
      for (const socket of openings) socket.destroy()
      for (const connection of http2) connection.drain()
    },
    /** Answers a CONNECT with 200, and reads what comes. The connection is closed when that is not possible. */
    open(socket: Socket, tunnel: ConnectTunnel) {
      // A client that left while its token was verified does not end a second time.
      if (isDraining || socket.readableEnded) {
        socket.destroy()
        return
      }
      openings.add(socket)
      socket.write(established)
      const leave = (): unknown => socket.destroy()
      const timer = setTimeout(leave, parts.limits.firstMs)
      const endOpening = (): void => {
        clearTimeout(timer)
        openings.delete(socket)
      }
      const opening = { parts, tunnel, socket, http2, endOpening }
      socket.once('close', endOpening).once('end', leave)
      awaitHello(socket, (hello, read) => {
        socket.off('end', leave)
        const problem = problemOf(hello, tunnel)
        if (read[0] !== handshakeByte) passInClear(opening, read, adopt)
        else if (problem === undefined) void secure(opening, read, adopt)
        else {
          fail(tunnel, problem, parts)
          socket.destroy()
        }
      })
    },
  }
}

interface Opening {
  readonly parts: InterceptionParts
  readonly tunnel: ConnectTunnel
  readonly socket: Socket
  readonly http2: Set<Http2Connection>
  /** The first request can be read now, or never. */
  endOpening(): void
}

/** No certificate is made before this is known. A client need not name the host. */
function problemOf(hello: ClientHello, { host }: ConnectTunnel): string | undefined {
  if (hello === 'malformed') return 'the ClientHello cannot be read'
  return (hello.name?.toLowerCase() ?? host) === host ? undefined : 'sni mismatch'
}

function passInClear({ tunnel, socket, endOpening }: Opening, read: Buffer, adopt: (connection: Duplex) => void): void {
  endOpening()
  tunnel.scheme = 'http'
  tunnel.connection = socket
  setTunnel(socket, tunnel)
  adopt(socket)
  // Node reads past the stream of a socket until it has a listener for data: what is put back would be lost.
  socket.on('data', () => {})
  socket.unshift(read)
  socket.resume()
}

async function secure(opening: Opening, read: Buffer, adopt: (connection: Duplex) => void): Promise<void> {
  const { parts, tunnel, socket, endOpening } = opening
  try {
    const secureContext = await parts.leafs.contextFor(tunnel.host, tunnel.agentId)
    if (socket.destroyed) return
    noteCarrier(socket)
    socket.unshift(read)
    readInPieces(socket)
    const ALPNProtocols = parts.hosts.speaksHttp2(tunnel.host) ? ['h2', 'http/1.1'] : ['http/1.1']
    const connection = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols })
    const close = (reason: string): void => {
      fail(tunnel, reason, parts)
      connection.destroy()
    }
    // Node and others break off without an alert.
    const leave = (): void => close(brokenOff)
    connection.on('error', error => close(reasonOf(error))).once('end', leave)
    connection.once('secure', () => {
      endOpening()
      connection.off('end', leave)
      parts.onHandshake(connection.isSessionReused())
      enter(opening, connection, adopt)
    })
  } catch (error) {
    fail(tunnel, asError(error).message, parts)
    socket.destroy()
  }
}

/** What was put back is read by node's TLS, which keeps a buffer of 16 KiB for each connection whose first one was full. */
function readInPieces(socket: Socket): void {
  const { read } = socket
  socket.read = size => read.call(socket, size ?? (Math.min(socket.readableLength, pieceBytes) || undefined))
}

function fail(tunnel: ConnectTunnel, reason: string, { onFailed }: InterceptionParts): void {
  if (!tunnel.isUnused) return
  tunnel.failure ??= reason
  onFailed(tunnel, reason)
}

function enter(opening: Opening, connection: TLSSocket, adopt: (connection: Duplex) => void): void {
  const { parts, tunnel, socket, http2 } = opening
  const since = parts.clock.steady()
  connection.once('end', () => {
    if (parts.clock.steady() - since < soonMs) fail(tunnel, brokenOff, parts)
  })
  const take = (carrying: Duplex): void => {
    markSamePeer(carrying, socket)
    setTunnel(carrying, tunnel)
    adopt(carrying)
  }
  if (connection.alpnProtocol !== 'h2') {
    tunnel.connection = connection
    take(connection)
    return
  }
  const session = new Http2Connection(connection, parts.limits, take, () => parts.onResets(tunnel))
  tunnel.connection = session
  http2.add(session)
  connection.once('close', () => http2.delete(session))
}

const unopened = 'ForwardProxy:TunnelHosts names hosts that are not opened'
const remedy = `give it the certificate of the CA, as docs/forward-proxy.md says; if it trusts one certificate alone, ${unopened}`
const distrusted = `the client does not trust the CA: ${remedy}`
const brokenOff = `the client broke off when it saw the certificate; it may not trust the CA: ${remedy}`

function reasonOf({ code = 'ERR_UNKNOWN', message }: NodeJS.ErrnoException): string {
  if (/ALERT_(?:UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE)/.test(code)) return distrusted
  if (code.includes('NO_APPLICATION_PROTOCOL'))
    return `the client does not offer HTTP/1.1; Proxy:Http2Hosts names hosts with HTTP/2, and ${unopened}`
  if (code === 'ECONNRESET') return brokenOff
  return code.startsWith('ERR_SSL_') ? code.slice('ERR_SSL_'.length).toLowerCase().replaceAll('_', ' ') : message
}
