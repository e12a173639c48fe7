/** Memory for held bodies. To take it from the system and to give it back costs more than to copy a body into it. */
export interface BodyMemory {
  /** Room for so many bytes or some more. What is in it is of other requests: fill it before you read it. */
  take(bytes: number): Buffer
  /** Takes back memory that nothing reads. */
  give(memory: Buffer): void
  /** How a body is lent to those who send it; undefined when its memory is not used again. */
  loanOf(body: Buffer): BodyLoan | undefined
  /** Lets go what was not needed since the last call. Call about every second. */
  sweep(): void
}

/** Shorter bodies take new memory, bytes: V8 makes small pieces fast, and they come in one chunk mostly. */
const shortest = 65_536

/** @param mostSpare bytes that are kept while nothing uses them */
export function createBodyMemory(mostSpare: number): BodyMemory {
  const spare = new Map<number, Buffer[]>()
  const lent = new WeakSet<ArrayBufferLike>()
  let spareBytes = 0
  /** What has been spare all the time since the last sweep, bytes. */
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
    give({ buffer }) {
      if (!lent.delete(buffer) || spareBytes + buffer.byteLength > mostSpare) return
      const size = buffer.byteLength
      const same = spare.get(size)
      if (same === undefined) spare.set(size, [Buffer.from(buffer)])
      else same.push(Buffer.from(buffer))
      spareBytes += size
    },
    loanOf: body => (lent.has(body.buffer) ? new BodyLoan(body, memory) : undefined),
    sweep() {
      for (const [size, same] of spare) {
        while (unneeded >= size && same.length > 0) {
          same.pop()
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

/** The next of eight sizes between two powers of two: memory of few sizes fits more often. */
function sizeFor(bytes: number): number {
  const step = 2 ** (Math.ceil(Math.log2(bytes)) - 3)
  return Math.ceil(bytes / step) * step
}

/**
 * A body that is lent to those who send it. Its memory is used again only when every write of it is known to be over and
 * its exchange too: another agent's bytes will be in it.
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

  /** A write begins. One that fails is never over. */
  begin(): void {
    if (this.#isEnded) throw new Error('cannot happen: a body is sent after its exchange')
    this.#begun += 1
  }

  /** A write is over: the system has all of it. */
  finish(): void {
    this.#over += 1
    this.#settle()
  }

  /** The exchange is over. */
  end(): void {
    this.#isEnded = true
    this.#settle()
  }

  /** Somebody else reads the body, too: its memory is left to the garbage collector. */
  keep(): void {
    this.#isKept = true
  }

  #settle(): void {
    if (!this.#isEnded || this.#isKept || this.#begun === 0 || this.#over < this.#begun) return
    this.#isKept = true
    this.#memory.give(this.#body)
  }
}
