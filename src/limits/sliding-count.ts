/** Counts events of a window in buckets. An event is counted for at least the window and at most one bucket more. */
export class SlidingCount {
  readonly #width: number
  readonly #counts: Float64Array
  /** Sum of all buckets, kept up to date: totals are read more often than buckets expire. */
  #sum = 0
  #newest = 0

  constructor(window: number, buckets: number) {
    this.#width = window / buckets
    this.#counts = new Float64Array(buckets + 1)
  }

  add(now: number, amount = 1): void {
    const bucket = this.#advance(now)
    this.#counts[bucket % this.#counts.length]! += amount
    this.#sum += amount
  }

  total(now: number): number {
    this.#advance(now)
    return this.#sum
  }

  /** Count of the bucket `back` before the present one. */
  at(now: number, back: number): number {
    const bucket = this.#advance(now) - back
    return bucket < 0 ? 0 : this.#counts[bucket % this.#counts.length]!
  }

  /** Empties the buckets that have expired. After the clock was set back, events count into the newest bucket. */
  #advance(now: number): number {
    const bucket = Math.floor(now / this.#width)
    if (bucket <= this.#newest) return this.#newest
    const steps = Math.min(bucket - this.#newest, this.#counts.length)
    for (let step = 0; step < steps; step++) {
      const place = (bucket - step) % this.#counts.length
      this.#sum -= this.#counts[place]!
      this.#counts[place] = 0
    }
    this.#newest = bucket
    return bucket
  }
}
