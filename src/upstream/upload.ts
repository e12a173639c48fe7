import type { Readable } from 'node:stream'
import { readTurns } from '../http/read-turns.ts'

export interface Sink {
  readonly write: (chunk: Buffer) => void
  readonly end: () => void
  /** Enough is on its way: no more until `resume`. */
  readonly isFull: () => boolean
}

export interface UploadEvents {
  /** Called with each piece before it is written; false stops the upload. */
  readonly onChunk: (piece: Buffer) => boolean
  /** All is written. */
  readonly onEnd: () => void
  /** The source is gone before its end, and may say why. */
  readonly onBroken: (error?: Error) => void
}

/** Passes a body on as fast as it is taken. Its source is not destroyed: the client has an answer to come. */
export class Upload {
  done = false
  readonly #body: Readable
  readonly #sink: Sink
  readonly #events: UploadEvents
  /** Bytes that are still to come; not a number when the length is not known. */
  #left: number

  /** @param length announced length, bytes */
  constructor(body: Readable, length: number | undefined, sink: Sink, events: UploadEvents) {
    this.#body = body
    this.#left = length ?? Number.NaN
    this.#sink = sink
    this.#events = events
    body.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onBroken).on('error', this.#onBroken)
    // One that was held up to a limit stands still.
    body.resume()
    // One that is gone already will not say so again.
    if (body.destroyed) process.nextTick(this.#onBroken, body.errored ?? undefined)
  }

  /** It waits for its source. */
  get waits(): boolean {
    return !this.done && !this.#sink.isFull()
  }

  resume(): void {
    if (!this.done && !readTurns.awaits(this.#onTurn)) this.#body.resume()
  }

  stop(): void {
    readTurns.forget(this.#onTurn)
    this.#body.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onBroken)
    if (!this.done) this.#body.pause()
  }

  readonly #onData = (chunk: Buffer): void => {
    // In chunks an empty piece would say that this is the end.
    const { length } = chunk
    if (length === 0 || !this.#events.onChunk(chunk)) return
    // The sink may free the chunk.
    this.#sink.write(chunk)
    this.#left -= length
    // The event `end` may come after the answer: it would look as if this were no place for another request.
    if (this.#left === 0) this.#finish()
    else if (this.#sink.isFull() || readTurns.isOver(length, this.#onTurn)) this.#body.pause()
  }

  readonly #onTurn = (): void => {
    if (!this.#sink.isFull()) this.resume()
  }

  readonly #onEnd = (): void => {
    if (!this.done) this.#finish()
  }

  readonly #onBroken = (error?: Error): void => {
    if (!this.done) this.#events.onBroken(error)
  }

  #finish(): void {
    this.done = true
    this.#sink.end()
    this.#events.onEnd()
  }
}
