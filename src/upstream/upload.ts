import type { Readable } from 'node:stream'

/** Where a body goes, and who is told. */
export interface UploadParts {
  readonly write: (chunk: Buffer) => void
  readonly end: () => void
  /** Enough is on its way: no more until `resume`. */
  readonly isFull: () => boolean
  /** Called with the length of each piece before it is written; false stops the upload. */
  readonly onChunk: (bytes: number) => boolean
  /** The source is gone before its end. */
  readonly onBroken: () => void
}

/** Passes a body on as fast as it is taken. Its source is not destroyed: the client has an answer to come. */
export class Upload {
  done = false
  readonly #body: Readable
  readonly #parts: UploadParts

  constructor(body: Readable, parts: UploadParts) {
    this.#body = body
    this.#parts = parts
    body.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onBroken).on('error', this.#onBroken)
    // One that was held up to a limit stands still.
    body.resume()
    // One that is gone already will not say so again.
    if (body.destroyed) process.nextTick(this.#onBroken)
  }

  resume(): void {
    if (!this.done) this.#body.resume()
  }

  stop(): void {
    this.#body.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onBroken)
    if (!this.done) this.#body.pause()
  }

  readonly #onData = (chunk: Buffer): void => {
    const { write, isFull, onChunk } = this.#parts
    // In chunks an empty piece would say that this is the end.
    if (chunk.length === 0 || !onChunk(chunk.length)) return
    write(chunk)
    if (isFull()) this.#body.pause()
  }

  readonly #onEnd = (): void => {
    this.done = true
    this.#parts.end()
  }

  readonly #onBroken = (): void => {
    if (!this.done) this.#parts.onBroken()
  }
}
