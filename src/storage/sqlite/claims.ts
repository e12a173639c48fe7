/**
 * Who has the say about a call: the storage thread, which begins it, or the caller, who gives it up. Whichever comes
 * first holds, so that a call that was given up is not done later.
 */
const waiting = 0
const begun = 1
const givenUp = 2

/** Calls that may wait at the same time. */
export const mostCalls = 65_536

export function createClaimMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(mostCalls * Int32Array.BYTES_PER_ELEMENT)
}

/** One side's view of the claims. Ids of calls are from 0 to `mostCalls` - 1. */
export class Claims {
  readonly #states: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#states = new Int32Array(memory)
  }

  /** A new call under this id waits. */
  open(id: number): void {
    Atomics.store(this.#states, id, waiting)
  }

  /** False when the call was given up. */
  begin(id: number): boolean {
    return Atomics.compareExchange(this.#states, id, waiting, begun) !== givenUp
  }

  /** False when the call was begun. */
  giveUp(id: number): boolean {
    return Atomics.compareExchange(this.#states, id, waiting, givenUp) === waiting
  }
}
