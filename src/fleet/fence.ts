/**
 * The fence of a gateway that shares agents and policies with others: it serves only while it certainly has
 * every change that the others assume it has. A change is answered when each other gateway has it, or was fenced.
 */
import type { Clock } from '../runtime/clock.ts'

/** Both clocks when a turn began. */
export interface Moment {
  readonly steady: number
  readonly wall: number
}

/** Two numbers in shared memory, for every thread: until when this gateway may serve, by the steady and the wall clock. */
export class Fence {
  readonly memory: SharedArrayBuffer
  readonly limitMs: number
  readonly #until: Float64Array
  readonly #clock: Clock
  /** A turn that begins after this steady time opens the fence. Undefined while it is open, and before the first turn. */
  #provenAt: number | undefined
  /** When it was dropped last, by the steady clock. */
  #droppedAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, limitMs: number, memory = new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.limitMs = limitMs
    this.#until = new Float64Array(memory)
    this.#clock = clock
  }

  /** Whether this gateway may serve. A paused machine stops the steady clock, and a jump moves the wall clock: both count. */
  get isOpen(): boolean {
    return this.#clock.steady() < this.#until[0]! && this.#clock.now() < this.#until[1]!
  }

  /** Time until it falls if no turn succeeds, milliseconds; 0 or less when it has fallen. */
  get leftMs(): number {
    return Math.min(this.#until[0]! - this.#clock.steady(), this.#until[1]! - this.#clock.now())
  }

  /** Call it before a turn asks the database. */
  begin(): Moment {
    return { steady: this.#clock.steady(), wall: this.#clock.now() }
  }

  /**
   * Every change that the turn has read is in force. An answer that comes after the fence fell does not lift it: others
   * may have left this gateway out meanwhile. A turn that begins after that answer does.
   */
  confirm(begun: Moment): void {
    // What the turn saw may be from before this gateway was left out, and confirmed only now.
    if (begun.steady < this.#droppedAt) return
    if (!this.isOpen && (this.#provenAt === undefined || begun.steady < this.#provenAt)) {
      this.#provenAt = this.#clock.steady()
      return
    }
    this.#provenAt = undefined
    // Turns are confirmed in their order; a wall clock that went back must not hold the fence up.
    this.#until[0] = begun.steady + this.limitMs
    this.#until[1] = begun.wall + this.limitMs
  }

  /** Others have left this gateway out: two turns must open the fence again. */
  drop(): void {
    this.#until.fill(Number.NEGATIVE_INFINITY)
    this.#provenAt = undefined
    this.#droppedAt = this.#clock.steady()
  }
}
