/** Least room that is taken, bytes. */
const leastRoom = 1_024

/**
 * Bytes that come in pieces and are wanted as one. They are copied into one memory: a sender may cut its bytes into
 * pieces of one, and a buffer for each would take a hundred times their memory.
 */
export class Gathered {
  size = 0
  #room: Buffer | undefined

  /** @param piece may be used again afterwards */
  add(piece: Uint8Array): void {
    const size = this.size + piece.length
    const before = this.#room
    if (before === undefined || before.length < size) {
      const room = Buffer.allocUnsafeSlow(Math.max(leastRoom, 2 * size))
      before?.copy(room, 0, 0, this.size)
      this.#room = room
    }
    this.#room?.set(piece, this.size)
    this.size = size
  }

  /** Returns all bytes and removes them. */
  take(): Buffer {
    const all = this.#room?.subarray(0, this.size) ?? Buffer.alloc(0)
    this.#room = undefined
    this.size = 0
    return all
  }
}
