/**
 * Connections of CONNECT that the gateway reads. It presents a leaf for the host that CONNECT named, and hands the plain side
 * on as a connection of HTTP/1.1. A client may also speak HTTP in the clear.
 */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { asError } from '../base/as-error.ts'
import { noteCarrier } from '../http/close-idle.ts'
import { type ConnectTunnel, setTunnel } from '../http/own-urls.ts'
import { markSamePeer } from '../http/unix-socket.ts'
import type { Clock } from '../runtime/clock.ts'
import type { CurrentLeafs } from './current-leafs.ts'
import type { OpenedHosts } from './opened-hosts.ts'

export interface InterceptionParts {
  readonly leafs: Pick<CurrentLeafs, 'contextFor' | 'permits'>
  readonly hosts: OpenedHosts
  readonly clock: Pick<Clock, 'steady'>
  /** Longest time until the first request can be read, milliseconds. */
  readonly timeoutMs: number
  readonly onHandshake: (isResumed: boolean) => void
  /** @param reason for people */
  readonly onFailed: (tunnel: NamedTunnel, reason: string) => void
}

/** A tunnel, as the log names it. */
export type NamedTunnel = Pick<ConnectTunnel, 'id' | 'agentId' | 'origin'>

export interface Interception {
  readonly hosts: OpenedHosts
  /** Whether the authority may vouch for a host. */
  permits(host: string): boolean
  /** Takes the plain sides. Called once, before the first `open`. */
  serve(adopt: (connection: Duplex) => void): void
  /** Answers a CONNECT with 200, and reads what comes. The connection is closed when that is not possible. */
  open(socket: Socket, tunnel: ConnectTunnel): void
  /** Tells of a tunnel that was closed for what it carries. */
  failed(tunnel: NamedTunnel, reason: string): void
  /** Tells of bytes in a tunnel that are no request. */
  notHttp(tunnel: ConnectTunnel): void
  /** Closes the tunnels that carry no connection of HTTP yet, and opens no more. */
  drain(): void
}

/** The answer to a CONNECT that opens a tunnel. */
export const established = 'HTTP/1.1 200 Connection established\r\n\r\n'
/** First byte of a TLS handshake (RFC 8446 section 5.1). */
const handshakeByte = 0x16
/** A client that closes so soon after the handshake, without a request, has not liked the certificate, milliseconds. */
const soonMs = 1_000

export function createInterception(parts: InterceptionParts): Interception {
  let adopt = (_: Duplex): void => {
    throw new Error('cannot happen: a tunnel before the gateway serves')
  }
  const openings = new Set<Socket>()
  let isDraining = false
  return {
    hosts: parts.hosts,
    failed: parts.onFailed,
    permits: host => parts.leafs.permits(host),
    serve(taker) {
      adopt = taker
    },
    notHttp(tunnel) {
      if (tunnel.isUnused) parts.onFailed(tunnel, 'not http')
    },
    drain() {
      isDraining = true
      for (const socket of openings) socket.destroy()
    },
    open(socket, tunnel) {
      // A client that left while its token was verified does not end a second time.
      if (isDraining || socket.readableEnded) {
        socket.destroy()
        return
      }
      openings.add(socket)
      socket.write(established)
      const leave = (): unknown => socket.destroy()
      const timer = setTimeout(leave, parts.timeoutMs)
      const endOpening = (): void => {
        clearTimeout(timer)
        openings.delete(socket)
      }
      const opening = { parts, tunnel, socket, endOpening }
      socket.once('close', endOpening).once('end', leave)
      socket.once('data', (first: Buffer) => {
        socket.pause()
        socket.off('end', leave)
        if (first[0] === handshakeByte) void secure(opening, first, adopt)
        else passInClear(opening, first, adopt)
      })
    },
  }
}

interface Opening {
  readonly parts: InterceptionParts
  readonly tunnel: ConnectTunnel
  readonly socket: Socket
  /** The first request can be read now, or never. */
  endOpening(): void
}

function passInClear(
  { tunnel, socket, endOpening }: Opening,
  first: Buffer,
  adopt: (connection: Duplex) => void,
): void {
  endOpening()
  tunnel.scheme = 'http'
  setTunnel(socket, tunnel)
  adopt(socket)
  // Node reads past the stream of a socket until it has a listener for data: what is put back would be lost.
  socket.on('data', () => {})
  socket.unshift(first)
  socket.resume()
}

async function secure(opening: Opening, first: Buffer, adopt: (connection: Duplex) => void): Promise<void> {
  const { parts, tunnel, socket, endOpening } = opening
  try {
    const secureContext = await parts.leafs.contextFor(tunnel.host)
    if (socket.destroyed) return
    noteCarrier(socket)
    socket.unshift(first)
    const connection = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] })
    const fail = (reason: string): void => {
      if (tunnel.isUnused) parts.onFailed(tunnel, reason)
      connection.destroy()
    }
    // Node and others break off without an alert.
    const leave = (): void => fail(brokenOff)
    connection.on('error', error => fail(reasonOf(error))).once('end', leave)
    connection.once('secure', () => {
      endOpening()
      connection.off('end', leave)
      parts.onHandshake(connection.isSessionReused())
      // After the handshake, since for a resumed session node does not report the name before.
      if (isNamed(tunnel, connection)) enter(opening, connection, adopt)
      else fail('sni mismatch')
    })
  } catch (error) {
    parts.onFailed(tunnel, asError(error).message)
    socket.destroy()
  }
}

function enter({ parts, tunnel, socket }: Opening, connection: TLSSocket, adopt: (connection: Duplex) => void): void {
  const since = parts.clock.steady()
  markSamePeer(connection, socket)
  setTunnel(connection, tunnel)
  connection.once('end', () => {
    if (tunnel.isUnused && parts.clock.steady() - since < soonMs) parts.onFailed(tunnel, brokenOff)
  })
  adopt(connection)
}

/** Whether the client has asked for the host that its CONNECT named. It need not name it. */
function isNamed({ host }: ConnectTunnel, { servername }: TLSSocket & { readonly servername?: unknown }): boolean {
  return typeof servername !== 'string' || servername.toLowerCase() === host
}

const unopened = 'ForwardProxy:TunnelHosts names hosts that are not opened'
const remedy = `give it the certificate of the CA, as docs/forward-proxy.md says; if it trusts one certificate alone, ${unopened}`
const distrusted = `the client does not trust the CA: ${remedy}`
const brokenOff = `the client broke off when it saw the certificate; it may not trust the CA: ${remedy}`

function reasonOf({ code = 'ERR_UNKNOWN', message }: NodeJS.ErrnoException): string {
  if (/ALERT_(?:UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE)/.test(code)) return distrusted
  if (code.includes('NO_APPLICATION_PROTOCOL')) return `the client does not offer HTTP/1.1; ${unopened}`
  if (code === 'ECONNRESET') return brokenOff
  return code.startsWith('ERR_SSL_') ? code.slice('ERR_SSL_'.length).toLowerCase().replaceAll('_', ' ') : message
}
