/** How long after its head, and how far, an answer is read whose client has left. */
const maxMs = 1_000
const maxBytes = 262_144

/**
 * What is still read of an answer after its client has left. Providers of models report the usage last, and many agents leave
 * just before.
 */
export class LastBytes {
  /** Resolves when nothing more is read. */
  readonly over: Promise<void>
  #timer: NodeJS.Timeout | undefined
  readonly #end: () => void
  readonly #stopReading: () => void
  #left = maxBytes

  /** @param stop called when time or bytes are over; not called after `end` */
  constructor(stop: () => void) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.over = promise
    this.#end = resolve
    this.#stopReading = stop
  }

  /** The head is there. Until then the time limits for upstreams hold. */
  begin(): void {
    this.#timer = setTimeout(() => this.stop(), maxMs)
  }

  add(bytes: number): void {
    this.#left -= bytes
    if (this.#left < 0) this.stop()
  }

  /** Nothing more is of use. */
  stop(): void {
    this.end()
    this.#stopReading()
  }

  /** The answer is over. */
  end(): void {
    clearTimeout(this.#timer)
    this.#end()
  }
}
