import { connect as connectTcp, type OnReadOpts, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, createSecureContext, getCACertificates } from 'node:tls'
import { literalAddress, unmapped } from '../base/address.ts'
import type { Origin } from '../base/origin.ts'
import type { Clock } from '../runtime/clock.ts'
import { LRUCache } from '../runtime/lru.ts'
import { UpstreamBusyError, UpstreamError } from './handler.ts'

export interface DialSettings {
  readonly connectTimeoutMs: number
  /** PEM text of certificate authorities trusted beside the built-in ones. */
  readonly ca?: string | undefined
}

export interface DialRequest {
  readonly origin: Origin
  /** Offer HTTP/2, and prefer it. */
  readonly http2: boolean
  /** Receives what is read, instead of a stream. */
  readonly onread?: OnReadOpts | undefined
  /** Time for all addresses together, milliseconds, when it is shorter than that of the settings. */
  readonly withinMs?: number | undefined
}

/** @param address the one that the connection really has */
export type Dialled = (error: Error | null, socket?: Socket, address?: string) => void

/** Connects to one of the checked addresses, in order. One time limit holds for all of them together. */
export type Dial = (addresses: readonly string[], attempt: DialRequest, done: Dialled) => void

/** The same, with the time that each connection took. */
export function withTimes(
  dial: Dial,
  { onConnected }: { readonly onConnected?: ((ms: number) => void) | undefined },
  { steady }: Pick<Clock, 'steady'>,
): Dial {
  if (onConnected === undefined) return dial
  return (addresses, attempt, done) => {
    const since = steady()
    dial(addresses, attempt, (error, socket, address) => {
      if (error === null) onConnected(steady() - since)
      done(error, socket, address)
    })
  }
}

/** TLS sessions that are kept to be resumed, one for each origin. */
const maxSessions = 256
const keepAliveProbeMs = 60_000

/** Connections to addresses that egress has checked: the connected address is compared with the checked ones. */
export function createDial({ connectTimeoutMs, ca }: DialSettings): Dial {
  // Made once: reading a few hundred authorities takes 24 ms.
  const secureContext = createSecureContext(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] })
  const sessions = new LRUCache<string, Buffer>({ max: maxSessions })

  const open = (address: string, { origin, http2, onread }: DialRequest): Socket => {
    const target = { host: address, port: origin.port, ...(onread === undefined ? {} : { onread }) }
    if (origin.scheme === 'http') return connectTcp(target)
    const socket = connectTls({
      ...target,
      secureContext,
      // Even if NODE_TLS_REJECT_UNAUTHORIZED is 0.
      rejectUnauthorized: true,
      ...namesOf(origin, http2),
      ...resumed(sessions.get(origin.key)),
    })
    // A session that the upstream cannot resume must not be offered again.
    socket.on('error', () => sessions.delete(origin.key))
    socket.on('session', session => void sessions.set(origin.key, session))
    return socket
  }

  return (addresses, attempt, done) => {
    const limitMs = Math.min(connectTimeoutMs, attempt.withinMs ?? connectTimeoutMs)
    const event = attempt.origin.scheme === 'http' ? 'connect' : 'secureConnect'
    const connect: ConnectTo = (address, report) =>
      connected({ socket: open(address, attempt), address, event }, report)
    tryEach({ addresses, limitMs, connect }, done)
  }
}

export interface TcpDialParts extends Pick<DialSettings, 'connectTimeoutMs'> {
  /** Takes a place for a connection, and returns what gives it back; undefined when there is none. */
  readonly takePlace: () => (() => void) | undefined
}

/** The same in the clear, whatever the scheme of the origin: for bytes that the gateway does not read. */
export function createTcpDial({ connectTimeoutMs: limitMs, takePlace }: TcpDialParts): Dial {
  return (addresses, { origin }, report) => {
    const givePlace = takePlace()
    if (givePlace === undefined) {
      report(new UpstreamBusyError())
      return
    }
    const done: Dialled = (error, socket, address) => {
      if (socket === undefined) givePlace()
      else socket.once('close', givePlace)
      report(error, socket, address)
    }
    const open = (address: string) => connectTcp({ host: address, port: origin.port })
    const connect: ConnectTo = (address, report) =>
      connected({ socket: open(address), address, event: 'connect' }, report)
    tryEach({ addresses, limitMs, connect }, done)
  }
}

/** Calls `report` once. */
type ConnectTo = (address: string, report: (error: Error | null) => void) => Socket

interface Connecting {
  readonly socket: Socket
  readonly address: string
  readonly event: 'connect' | 'secureConnect'
}

function connected({ socket, address, event }: Connecting, done: (error: Error | null) => void): Socket {
  socket.setNoDelay(true).setKeepAlive(true, keepAliveProbeMs)
  const report = (error: Error | null): void => {
    socket.off('error', report).off('close', onClose)
    done(error)
  }
  const onClose = () => report(new UpstreamError('reset', `${address} closed the connection`))
  socket.on('error', report).on('close', onClose)
  return socket.once(event, () => report(null))
}

interface Tries {
  readonly addresses: readonly string[]
  /** For all of them together, milliseconds. */
  readonly limitMs: number
  readonly connect: ConnectTo
}

function tryEach({ addresses, limitMs, connect }: Tries, done: Dialled): void {
  let isOver = false
  let giveUp = (): void => {}
  const deadline = setTimeout(() => {
    isOver = true
    giveUp()
  }, limitMs)
  const report: Dialled = (error, socket, address) => {
    clearTimeout(deadline)
    done(error, socket, address)
  }
  const tryFrom = (index: number): void => {
    const address = addresses[index] ?? ''
    const isLast = index >= addresses.length - 1
    const socket = connect(address, error => {
      clearTimeout(giveUpTimer)
      if (error === null && sameAddress(socket.remoteAddress, address)) {
        report(null, socket, address)
        return
      }
      // Later errors are ignored.
      socket.on('error', () => {}).destroy()
      if (error !== null && !isLast && !isOver) tryFrom(index + 1)
      else report(error ?? new WrongAddressError())
    })
    giveUp = () => socket.destroy(new UpstreamError('connect_timeout', `no connection to ${address} in time`))
    // A silent address leaves time to the others: the first has half of it, the second a quarter, the last the rest.
    const giveUpTimer = isLast ? undefined : setTimeout(giveUp, limitMs / 2 ** (index + 1))
  }
  tryFrom(0)
}

/** The name to be verified, and the protocols to be offered. The certificate for an address names the address. */
function namesOf({ host }: Origin, http2: boolean): ConnectionOptions {
  const ALPNProtocols = http2 ? ['h2', 'http/1.1'] : ['http/1.1']
  return literalAddress(host) === undefined ? { servername: host, ALPNProtocols } : { ALPNProtocols }
}

const resumed = (session: Buffer | undefined): ConnectionOptions => (session === undefined ? {} : { session })

/** The socket is connected to another address than the one that was checked. */
class WrongAddressError extends Error {
  override readonly name = 'WrongAddressError'
}

function sameAddress(actual: string | undefined, checked: string): boolean {
  return actual !== undefined && unmapped(actual) === unmapped(checked)
}
