/**
 * Which side decides about a call: the storage thread, which begins it, or the caller, who gives it up. Whichever comes
 * first holds, so that a call that was given up is not done later.
 */
const waiting = 0
const begun = 1
const givenUp = 2

/** Calls that may wait at the same time. */
const maxCalls = 65_536

export function createClaimMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(maxCalls * Int32Array.BYTES_PER_ELEMENT)
}

/** One side's view of the claims. The caller's side opens and frees them. */
export class CallClaims {
  readonly #states: Int32Array
  readonly #free: number[] = []
  #used = 0

  constructor(memory: SharedArrayBuffer) {
    this.#states = new Int32Array(memory)
  }

  /** A place for a call that waits from now on; undefined when all are taken. */
  open(): number | undefined {
    const id = this.#free.pop() ?? this.#used++
    if (id >= maxCalls) return undefined
    Atomics.store(this.#states, id, waiting)
    return id
  }

  /** The thread has answered or passed over the call: its place can be used again. */
  free(id: number): void {
    this.#free.push(id)
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
