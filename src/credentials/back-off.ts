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
