/**
 * The time of all gateways on one database: that of the database at the last turn, and steady time since. A jump of a
 * local wall clock changes nothing. A jump of the database's clock is followed slowly: nothing lapses early, and nothing
 * that has lapsed is valid again.
 */
import { type Clock, clockIn, systemClock } from '../runtime/clock.ts'

/** Times of one turn. Steady milliseconds, but for `now`. */
export interface TimeSample {
  readonly sent: number
  readonly arrived: number
  /** Of the database, in between; milliseconds since the Unix epoch. */
  readonly now: number
  /** How far another gateway that lives is ahead of the database, milliseconds; null when there is none. */
  readonly othersAhead: number | null
  /** Whether this gateway could serve when the turn began: if not, its steady clock may have stood still. */
  readonly served: boolean
}

/** Samples that took longer say too little, milliseconds. */
const slowMs = 500
/** By how much faster or slower than time itself this clock goes to meet the database. */
const rate = 0.1
/** A difference that people should know of, milliseconds. */
const notableMs = 1_000

export class FleetClock implements Clock {
  // Functions of their own: parts of a clock are passed on alone.
  readonly now: () => number
  readonly steady: () => number
  /** The wall time at steady time 0: one number, for all threads. */
  readonly memory: SharedArrayBuffer
  /** Called when the clock of the database is found to be ahead by so many milliseconds, or behind. */
  onOff: (ms: number) => void = () => {}
  readonly #offset: Float64Array
  /** It has given its time to nobody before. */
  #hasServed = false
  #sampled: number | undefined
  #ahead = 0
  #isReported = false

  constructor(local: Clock = systemClock) {
    this.memory = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)
    this.#offset = new Float64Array(this.memory)
    this.#offset[0] = local.now() - local.steady()
    const { now, steady } = clockIn(this.memory, local)
    this.now = now
    this.steady = steady
  }

  /** How far this clock is ahead of the database's, milliseconds. */
  get ahead(): number {
    return Math.round(this.#ahead)
  }

  take({ sent, arrived, now, othersAhead, served }: TimeSample): void {
    const uncertainty = (arrived - sent) / 2
    if (arrived - sent > slowMs) return
    const database = now - (sent + uncertainty)
    const before = this.#offset[0]!
    const elapsed = arrived - (this.#sampled ?? arrived)
    this.#sampled = arrived
    this.#hasServed ||= served
    // One that did not serve takes the time of those that do; it never goes back at once.
    const agreed = served ? database : database + (othersAhead ?? 0)
    const off = agreed - before
    if (!this.#hasServed || (!served && off > 0)) this.#offset[0] = agreed
    else if (Math.abs(off) > uncertainty)
      this.#offset[0] = before + Math.sign(off) * Math.min(Math.abs(off), rate * elapsed)
    this.#ahead = this.#offset[0]! - database
    this.#report(this.#hasServed ? -this.#ahead : 0)
  }

  #report(off: number): void {
    const isNotable = Math.abs(off) > notableMs
    if (isNotable && !this.#isReported) this.onOff(off)
    this.#isReported = isNotable
  }
}
