/**
 * A small table of texts in front of a map. The texts of a message come as fresh strings, and a map must work out the hash
 * of each: that costs 150 ns more than comparing it with the one text in its slot here.
 */
export class DirectMappedCache<Value> {
  readonly #texts: string[]
  readonly #values: (Value | undefined)[]
  readonly #mask: number

  /** @param size number of slots, a power of two. Each holds the latest text of those that share it. */
  constructor(size: number) {
    this.#texts = new Array<string>(size).fill('')
    this.#values = new Array<Value | undefined>(size).fill(undefined)
    this.#mask = size - 1
  }

  get(text: string): Value | undefined {
    const at = slotOf(text, this.#mask)
    return this.#texts[at] === text ? this.#values[at] : undefined
  }

  set(text: string, value: Value): void {
    const at = slotOf(text, this.#mask)
    this.#texts[at] = text
    this.#values[at] = value
  }
}

/** The slot depends on the length and three characters. Texts that share a slot are found in the map, at its cost. */
function slotOf(text: string, mask: number): number {
  const { length } = text
  const ends = text.charCodeAt(0) * 31 + text.charCodeAt(length - 1) * 7
  return (length * 13 + ends + text.charCodeAt(length >> 1) * 3) & mask
}
