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
