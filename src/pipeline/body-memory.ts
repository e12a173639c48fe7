import { freeBytes } from '../http/free-bytes.ts'

/** Memory for held bodies. Allocating and freeing memory costs more than copying a body into it. */
export interface BodyMemory {
  /** Memory for this many bytes or a few more. It contains bytes of other requests: fill it before you read it. */
  take(bytes: number): Buffer
  /** Takes memory back, or frees it. Nothing may read it any more. */
  give(memory: Buffer): void
  /** The loan of a body to the parts that send it. */
  loanOf(body: Buffer): BodyLoan
  /** Frees memory that was not needed since the last call. Call about every second. */
  sweep(): void
}

/** Shorter bodies get new memory, bytes: V8 allocates small pieces fast, and most arrive in one chunk. */
const shortest = 65_536

/** @param maxSpare bytes that are kept while nothing uses them */
export function createBodyMemory(maxSpare: number): BodyMemory {
  const spare = new Map<number, Buffer[]>()
  const lent = new WeakSet<ArrayBufferLike>()
  let spareBytes = 0
  /** Bytes that were spare during all of the time since the last sweep. */
  let unneeded = 0

  const takeSpare = (size: number): Buffer | undefined => {
    const memory = spare.get(size)?.pop()
    if (memory === undefined) return undefined
    spareBytes -= size
    unneeded = Math.min(unneeded, spareBytes)
    return memory
  }

  const memory: BodyMemory = {
    take(bytes) {
      if (bytes < shortest) return Buffer.allocUnsafeSlow(bytes)
      const size = sizeFor(bytes)
      const taken = takeSpare(size) ?? Buffer.allocUnsafeSlow(size)
      lent.add(taken.buffer)
      return taken
    },
    give(body) {
      const { buffer } = body
      const size = buffer.byteLength
      if (!lent.delete(buffer)) {
        freeBytes(body)
        return
      }
      if (spareBytes + size > maxSpare) {
        freeBytes(Buffer.from(buffer))
        return
      }
      const same = spare.get(size)
      if (same === undefined) spare.set(size, [Buffer.from(buffer)])
      else same.push(Buffer.from(buffer))
      spareBytes += size
    },
    loanOf: body => new BodyLoan(body, memory),
    sweep() {
      for (const [size, same] of spare) {
        for (const memory of same.splice(0, Math.floor(unneeded / size))) {
          freeBytes(memory)
          spareBytes -= size
          unneeded -= size
        }
        if (same.length === 0) spare.delete(size)
      }
      unneeded = spareBytes
    },
  }
  return memory
}

/** Rounds up to one of eight sizes between two powers of two: with few sizes, spare memory fits more often. */
function sizeFor(bytes: number): number {
  const step = 2 ** (Math.ceil(Math.log2(bytes)) - 3)
  return Math.ceil(bytes / step) * step
}

/**
 * A body that is lent to the parts that send it. Its memory is used again only when its exchange and every write of it
 * are over, because it will then hold bytes of another agent.
 */
export class BodyLoan {
  readonly #body: Buffer
  readonly #memory: BodyMemory
  #begun = 0
  #over = 0
  #isEnded = false
  #isKept = false

  constructor(body: Buffer, memory: BodyMemory) {
    this.#body = body
    this.#memory = memory
  }

  /** A write begins. A write that fails never counts as over. */
  begin(): void {
    if (this.#isEnded) throw new Error('cannot happen: a body is sent after its exchange')
    this.#begun += 1
  }

  /** A write is over: the system has all of it. */
  finish(): void {
    this.#over += 1
    this.#giveBack()
  }

  /** The exchange is over. */
  end(): void {
    this.#isEnded = true
    this.#giveBack()
  }

  /** Another part reads the body as well: its memory is left to the garbage collector. */
  keep(): void {
    this.#isKept = true
  }

  #giveBack(): void {
    if (!this.#isEnded || this.#isKept || this.#begun === 0 || this.#over < this.#begun) return
    this.#isKept = true
    this.#memory.give(this.#body)
  }
}
