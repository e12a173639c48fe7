/** Minimum size of the buffer, bytes. */
const minCapacity = 1_024

/**
 * Bytes that come in pieces and are wanted as one. They are copied into one memory: a sender may cut its bytes into
 * pieces of one, and a buffer for each would take a hundred times their memory.
 */
export class GrowingBuffer {
  size = 0
  #buffer: Buffer | undefined

  /** All bytes. They stay as they are when more is added. */
  get bytes(): Buffer {
    return this.#buffer?.subarray(0, this.size) ?? Buffer.alloc(0)
  }

  /** @param piece may be used again afterwards */
  add(piece: Uint8Array): void {
    const size = this.size + piece.length
    const before = this.#buffer
    if (before === undefined || before.length < size) {
      const buffer = Buffer.allocUnsafeSlow(Math.max(minCapacity, 2 * size))
      before?.copy(buffer, 0, 0, this.size)
      this.#buffer = buffer
    }
    this.#buffer?.set(piece, this.size)
    this.size = size
  }

  /** Returns all bytes and removes them. */
  take(): Buffer {
    const all = this.bytes
    this.#buffer = undefined
    this.size = 0
    return all
  }
}
