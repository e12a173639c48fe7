import type { Readable } from 'node:stream'
import { asError } from '../base/as-error.ts'
import {
  bodyTimeout,
  brokenUpload,
  type ConnectionLease,
  type Control,
  headersTimeout,
  MalformedBodyError,
  type ResponseHead,
  UpstreamError,
  type UpstreamHandler,
  type UpstreamRequest,
} from './handler.ts'
import { idleLimitOf, type SilenceLimits } from './settings.ts'
import { type Sink, Upload } from './upload.ts'

export interface ExchangeParts {
  readonly limits: SilenceLimits
  /** Released once, before the handler gets the end. */
  readonly lease: ConnectionLease
}

/** Interim answers that an upstream may send before the real one. */
const maxInterim = 16

/** One request and its answer: what is the same over each client and protocol. Subclasses parse and write. */
export abstract class UpstreamExchange<Head extends ResponseHead = ResponseHead> implements Control {
  hasAnswer = false
  protected readonly request: UpstreamRequest
  protected readonly handler: UpstreamHandler
  protected head: Head | undefined
  protected upload: Upload | undefined
  protected paused = false
  protected over = false
  readonly #limits: SilenceLimits
  readonly #lease: ConnectionLease
  /** Undefined while the head of its answer is awaited on a connection that counts that time (http1.ts). */
  #timer: SilenceTimer | undefined
  #interim = 0

  constructor(request: UpstreamRequest, handler: UpstreamHandler, { limits, lease }: ExchangeParts) {
    this.request = request
    this.handler = handler
    this.#limits = limits
    this.#lease = lease
  }

  /** Reading stops, or goes on. */
  protected abstract hold(isHeld: boolean): void

  /** Leaves the connection. Called once, before the handler gets the end. Without an error the answer is whole. */
  protected abstract leave(error: Error | undefined): void

  abort(reason: Error): void {
    this.fail(reason)
  }

  fail(error: Error): void {
    if (this.over) return
    this.#end(error)
    this.handler.onResponseError(error)
  }

  protected complete(trailers: readonly string[]): void {
    if (this.over) return
    this.#end(undefined)
    this.handler.onResponseEnd(trailers)
  }

  pause(): void {
    if (this.over || this.paused) return
    this.paused = true
    // The upstream may be silent while the client does not read.
    this.#stopTimer()
    this.hold(true)
  }

  resume(): void {
    if (this.over || !this.paused) return
    this.paused = false
    this.watch()
    this.hold(false)
  }

  protected passInterim(head: ResponseHead): void {
    this.#interim += 1
    if (this.#interim > maxInterim) throw new UpstreamError('malformed', 'too many interim answers')
    this.handler.onInterim?.(head)
  }

  /** The connection takes more of the request. */
  drained(): void {
    this.upload?.resume()
  }

  /** An exception of the handler ends the exchange. */
  protected guarded(work: () => void): void {
    if (this.over) return
    try {
      work()
    } catch (error) {
      if (this.over) throw error
      this.fail(asError(error))
    }
  }

  /** Sends the body as it comes. */
  protected send(body: Readable, sink: Sink): void {
    this.upload = new Upload(body, this.request.bodyLength, sink, {
      onChunk: piece => {
        this.guarded(() => this.handler.onBodySent?.(piece.length, piece))
        if (!this.over) this.progressed()
        return !this.over
      },
      onEnd: () => this.progressed(),
      onBroken: error => this.fail(error instanceof MalformedBodyError ? error : brokenUpload()),
    })
  }

  /** An answer that waits for the rest of the request does not stand still. */
  protected progressed(): void {
    this.#timer?.restart()
  }

  /** Counts silence from now on, by the limit for a head or for a body. */
  protected watch(): void {
    if (this.#timer?.runs === true) this.#timer.restart()
    else if (!this.paused && !this.over) {
      this.#timer ??= new SilenceTimer(() => this.late())
      const { head } = this
      this.#timer.begin(head === undefined ? this.#limits.headersTimeoutMs : idleLimitOf(head.fields, this.#limits))
    }
  }

  /** The same, where the limit for a head was counted before. */
  protected watchBody(): void {
    this.#stopTimer()
    this.watch()
  }

  /** The limit is over. A client that is slow to send its body is not the upstream's fault. */
  protected late(): void {
    if (this.head !== undefined) this.fail(bodyTimeout())
    else if (this.upload?.waits !== true) this.fail(headersTimeout())
  }

  #stopTimer(): void {
    this.#timer?.stop()
  }

  #end(error: Error | undefined): void {
    this.over = true
    this.#stopTimer()
    this.upload?.stop()
    this.leave(error)
    this.#lease.release(error === undefined)
  }
}

/** A limit is counted in so many parts. */
const limitParts = 8

/**
 * A time limit that begins again with each message. To begin again sets a number, since to set a timer again costs more: so it is
 * met within one part of the limit.
 */
export class SilenceTimer {
  readonly #late: () => void
  #timer: NodeJS.Timeout | undefined
  #limitMs = 0
  /** Parts of the limit that went by in silence. */
  #parts = 0

  /** @param late called after the limit, and again after each further part, until it begins again or stops */
  constructor(late: () => void) {
    this.#late = late
  }

  get runs(): boolean {
    return this.#timer !== undefined
  }

  begin(limitMs: number): void {
    this.#parts = 0
    if (this.#timer !== undefined && this.#limitMs === limitMs) return
    clearInterval(this.#timer)
    this.#limitMs = limitMs
    this.#timer = setInterval(() => {
      this.#parts += 1
      if (this.#parts > limitParts) this.#late()
    }, limitMs / limitParts).unref()
  }

  /** Counts from now on, if it runs. */
  restart(): void {
    this.#parts = 0
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
