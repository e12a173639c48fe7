/** Pause after a failure, milliseconds: it doubles with each further one. */
const [firstPauseMs, longestPauseMs] = [1_000, 60_000]
/** Random part of the pauses, so that gateways that started together do not ask together. */
export const jitter = 0.1

/** The pause after attempts that failed, until one succeeds. */
export class BackOff {
  #failures = 0
  /** Steady milliseconds. */
  #notBefore = 0

  isOver(now: number): boolean {
    return now >= this.#notBefore
  }

  reset(): void {
    this.#failures = 0
    this.#notBefore = 0
  }

  fail(now: number): void {
    const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** this.#failures)
    this.#failures += 1
    this.#notBefore = now + pause * (1 + jitter * Math.random())
  }
}

/** How often something may be tried in vain: so often at once, and then once in a time. */
export class Attempts {
  readonly #everyMs: number
  readonly #aheadMs: number
  /** When those that were made would be due at that pace, steady milliseconds. */
  #dueAt = Number.NEGATIVE_INFINITY

  constructor({ atOnce, everyMs }: { readonly atOnce: number; readonly everyMs: number }) {
    this.#everyMs = everyMs
    this.#aheadMs = everyMs * (atOnce - 1)
  }

  areLeft(now: number): boolean {
    return this.#dueAt - now <= this.#aheadMs
  }

  begin(now: number): void {
    this.#dueAt = Math.max(this.#dueAt, now) + this.#everyMs
  }

  /** One was not in vain. */
  giveBack(): void {
    this.#dueAt -= this.#everyMs
  }
}
