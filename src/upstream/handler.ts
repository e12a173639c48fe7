/** A request to an upstream, and the handler of its events: the same over HTTP/1.1 and HTTP/2. */
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { KnownHead } from './known-head.ts'

export interface UpstreamRequest {
  /** Agent whose request it is; absent for the gateway's own. */
  readonly agentId?: string
  readonly method: string
  /** Path and query as they are sent. */
  readonly path: string
  /** Flat: name, value, name, value. Without Host and what frames the body: the connection sets those. */
  readonly fields: readonly string[]
  /** Pieces of a stream are freed when they are written: nothing else may read them. */
  readonly body: Buffer | Readable | null
  /** Length that was announced for a body that streams, bytes; undefined: it is not known. */
  readonly bodyLength?: number | undefined
  /** Longest time to connect when it is sent on a connection of its own, milliseconds. */
  readonly connectWithinMs?: number | undefined
  /** Asks for a WebSocket: after an answer 101 the connection is a tunnel. Only for requests that are sent alone. */
  readonly upgrades?: boolean
  /** Send it on a new connection: one that was used before has just broken under it. */
  readonly fresh?: boolean
}

export interface ResponseHead {
  readonly status: number
  readonly reason: string
  /** Flat, as received: bytes as the code points of the same number. */
  readonly fields: readonly string[]
  /** Announced length, bytes; undefined without one. */
  readonly contentLength: number | undefined
  /** Set for a head that came again on its connection: then it is the same object each time. */
  readonly known?: KnownHead | undefined
}

/** Controls one exchange. Has no effect when the exchange is over. */
export interface Control {
  /** Ends it at once: `onResponseError` is called with `reason`. */
  abort(reason: Error): void
  /** Stops reading the answer until `resume`. Bytes that were read before are still delivered. */
  pause(): void
  resume(): void
}

/** The place on a connection that an exchange takes. */
export interface ConnectionLease {
  /** Gives it back; `sound` when the answer came whole. */
  release(sound: boolean): void
}

/**
 * Receives the events of one exchange: first `onRequestStart` when it is about to be sent, last either `onResponseEnd` or
 * `onResponseError`. An exception of a callback ends the exchange; the last two must not throw.
 */
export interface UpstreamHandler {
  onRequestStart?(control: Control): void
  /** So many bytes of the body are about to be written. `piece` has those of a stream, and is valid during this call alone. */
  onBodySent?(bytes: number, piece?: Buffer): void
  /** A body that was given as a whole was written by the system. Not of every client: without a call it may be read still. */
  onBodyWritten?(): void
  /** An answer with status 1xx. */
  onInterim?(head: ResponseHead): void
  onResponseStart(head: ResponseHead): void
  /** The answer was 101. Bytes from the upstream arrive as the body of that answer; bytes for it go into the socket. */
  onTunnel?(socket: Socket): void
  /** `chunk` is valid during this call alone: its memory is used again. */
  onResponseData(chunk: Buffer): void
  /** The answer came whole. `trailers` are like `fields`. */
  onResponseEnd(trailers: readonly string[]): void
  /** Without an `onRequestStart` before, no byte was sent. */
  onResponseError(error: Error): void
}

/** Ends a request that has its place on a connection, and was not sent. */
export function failUnsent(handler: UpstreamHandler, lease: ConnectionLease, error: Error): void {
  lease.release(false)
  handler.onResponseError(error)
}

/** Statuses that an answer can carry: three digits. Servers use some above 599, which RFC 9110 section 15 has no class for. */
export function isStatus(status: number): boolean {
  return status >= 100 && status <= 999
}

/** Faults of an upstream, beside system errors. */
export type UpstreamFault = 'connect_timeout' | 'headers_timeout' | 'body_timeout' | 'reset' | 'malformed'

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly fault: UpstreamFault

  constructor(fault: UpstreamFault, message: string) {
    super(message)
    this.fault = fault
  }
}

/**
 * A connection that had served before broke before a byte of an answer came. Most likely the upstream closed it as idle
 * while the request was on its way. This says nothing of the upstream's health.
 */
export class StaleConnectionError extends UpstreamError {
  constructor() {
    super('reset', 'the upstream closed a kept connection as the request was sent')
  }
}

/** The upstream did not process the request, and says so (RFC 9113 section 8.7). */
export class RefusedStreamError extends UpstreamError {
  constructor() {
    super('reset', 'the upstream refused the stream')
  }
}

/** No connection became free in time. Nothing was sent. */
export class UpstreamBusyError extends Error {
  override readonly name = 'UpstreamBusyError'
}

/** The client sends a body that has not the form that its header says. The message is for the client. */
export class MalformedBodyError extends Error {
  override readonly name = 'MalformedBodyError'
}

export const closedConnection = (): Error => new UpstreamError('reset', 'the upstream closed the connection')
export const givenUp = (): Error => new UpstreamError('reset', 'the connection was given up')
export const brokenUpload = (): Error => new UpstreamError('reset', 'the body of the request broke off')
export const headersTimeout = (): Error => new UpstreamError('headers_timeout', 'no head of an answer in time')
export const bodyTimeout = (): Error => new UpstreamError('body_timeout', 'nothing came for too long')
