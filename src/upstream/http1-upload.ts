import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'

export interface UploadParts {
  readonly socket: Socket
  readonly chunked: boolean
  /** Told of the length of each piece before it is written; false: no more of it. */
  readonly onChunk: (bytes: number) => boolean
  readonly onDone: () => void
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
    // Whoever held the beginning of it has paused it.
    body.resume()
  }

  resume(): void {
    if (!this.done) this.#body.resume()
  }

  stop(): void {
    const isWhole = this.done
    this.#body.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onBroken)
    if (!isWhole) this.#body.pause()
  }

  readonly #onData = (chunk: Buffer): void => {
    const { socket, chunked, onChunk } = this.#parts
    if (!onChunk(chunk.length)) return
    if (chunked) {
      socket.cork()
      socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
      socket.write(chunk)
      socket.write('\r\n', 'latin1')
      socket.uncork()
    } else socket.write(chunk)
    if (socket.writableNeedDrain) this.#body.pause()
  }

  readonly #onEnd = (): void => {
    this.done = true
    const { chunked, socket, onDone } = this.#parts
    if (chunked) socket.write('0\r\n\r\n', 'latin1')
    onDone()
  }

  readonly #onBroken = (): void => {
    if (!this.done) this.#parts.onBroken()
  }
}
