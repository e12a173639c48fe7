/** How long, and how far, an answer is read whose client has left. */
const maxMs = 1_000
const maxBytes = 262_144

/**
 * What is still read of an answer after its client has left. Providers of models report the usage last, and many agents leave
 * just before.
 */
export class LastBytes {
  /** Resolves when nothing more is read. */
  readonly over: Promise<void>
  readonly #timer: NodeJS.Timeout
  readonly #end: () => void
  readonly #stopReading: () => void
  #left = maxBytes

  /** @param stop called when time or bytes are over; not called after `end` */
  constructor(stop: () => void) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.over = promise
    this.#timer = setTimeout(() => this.#stop(), maxMs)
    this.#end = resolve
    this.#stopReading = stop
  }

  add(bytes: number): void {
    this.#left -= bytes
    if (this.#left < 0) this.#stop()
  }

  #stop(): void {
    this.end()
    this.#stopReading()
  }

  /** The answer is over. */
  end(): void {
    clearTimeout(this.#timer)
    this.#end()
  }
}
