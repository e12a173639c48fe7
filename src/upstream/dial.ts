import type { OnReadOpts, Socket } from 'node:net'
import { connect as connectTcp, isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { connect as connectTls, createSecureContext, getCACertificates } from 'node:tls'
import { unmapped } from './address.ts'
import { UpstreamError } from './handler.ts'
import type { Origin } from './origin.ts'

export interface DialSettings {
  readonly connectTimeoutMs: number
  /** PEM text of certificate authorities trusted beside the built-in ones. */
  readonly ca?: string | undefined
}

export interface Attempt {
  readonly origin: Origin
  /** Offer HTTP/2, and prefer it. */
  readonly http2: boolean
  /** Takes what is read in the place of a stream. */
  readonly onread?: OnReadOpts | undefined
}

/** @param address the one that the connection really has */
export type Dialled = (error: Error | null, socket?: Socket, address?: string) => void

/** Connects to one of the checked addresses, in order. */
export type Dial = (addresses: readonly string[], attempt: Attempt, done: Dialled) => void

/** TLS sessions that are kept to be resumed, one for each origin. */
const maxSessions = 256
const keepAliveProbeMs = 60_000

/** Connections to addresses that egress has checked: what is connected to is compared with what was checked. */
export function createDial({ connectTimeoutMs, ca }: DialSettings): Dial {
  // Made once: reading a few hundred authorities takes 24 ms.
  const secureContext = createSecureContext(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] })
  const sessions = new Map<string, Buffer>()

  const open = (address: string, { origin, http2, onread }: Attempt): Socket => {
    const target = { host: address, port: origin.port, ...(onread === undefined ? {} : { onread }) }
    if (origin.scheme === 'http') return connectTcp(target)
    const socket = connectTls({
      ...target,
      secureContext,
      // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
      rejectUnauthorized: true,
      ...namesOf(origin, http2),
      ...resumed(sessions.get(origin.key)),
    })
    // A session that an upstream cannot go on with must not be offered again.
    socket.on('error', () => sessions.delete(origin.key))
    socket.on('session', session => {
      if (sessions.size >= maxSessions) sessions.delete(sessions.keys().next().value as string)
      sessions.set(origin.key, session)
    })
    return socket
  }

  const connect = (address: string, attempt: Attempt, done: (error: Error | null, socket: Socket) => void): void => {
    const socket = open(address, attempt)
    socket.setNoDelay(true).setKeepAlive(true, keepAliveProbeMs)
    const late = () => socket.destroy(new UpstreamError('connect_timeout', `no connection to ${address} in time`))
    const timer = setTimeout(late, connectTimeoutMs)
    const settle = (error: Error | null): void => {
      clearTimeout(timer)
      socket.off('error', settle).off('close', onClose)
      done(error, socket)
    }
    const onClose = () => settle(new UpstreamError('reset', `${address} closed the connection`))
    socket.on('error', settle).on('close', onClose)
    socket.once(attempt.origin.scheme === 'http' ? 'connect' : 'secureConnect', () => settle(null))
  }

  const dial = (addresses: readonly string[], attempt: Attempt, done: Dialled): void => {
    const [address = '', ...others] = addresses
    connect(address, attempt, (error, socket) => {
      if (error === null && sameAddress(socket.remoteAddress, address)) {
        done(null, socket, address)
        return
      }
      // An error that comes after this one is of no interest.
      socket.on('error', () => {}).destroy()
      if (error !== null && others.length > 0) dial(others, attempt, done)
      else done(error ?? new WrongAddressError())
    })
  }
  return dial
}

/** The name to be verified, and the protocols to be offered. The certificate for an address names the address. */
function namesOf({ host }: Origin, http2: boolean): ConnectionOptions {
  const ALPNProtocols = http2 ? ['h2', 'http/1.1'] : ['http/1.1']
  return isIP(host.replace(/^\[|\]$/g, '')) === 0 ? { servername: host, ALPNProtocols } : { ALPNProtocols }
}

const resumed = (session: Buffer | undefined): ConnectionOptions => (session === undefined ? {} : { session })

/** The socket is connected to another address than the one that was checked. */
class WrongAddressError extends Error {
  override readonly name = 'WrongAddressError'
}

function sameAddress(actual: string | undefined, checked: string): boolean {
  return actual !== undefined && unmapped(actual) === unmapped(checked)
}
