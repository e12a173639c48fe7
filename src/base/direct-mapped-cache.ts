/**
 * A small table of texts in front of a map. The texts of a message come as fresh strings, and a map must work out the hash
 * of each: that costs 150 ns more than comparing it with the one text that stands in its place here.
 */
export class DirectMappedCache<Value> {
  readonly #texts: string[]
  readonly #values: (Value | undefined)[]
  readonly #mask: number

  /** @param size number of places, a power of two. Each place holds the latest text of those that share it. */
  constructor(size: number) {
    this.#texts = new Array<string>(size).fill('')
    this.#values = new Array<Value | undefined>(size).fill(undefined)
    this.#mask = size - 1
  }

  get(text: string): Value | undefined {
    const place = this.#placeOf(text)
    return this.#texts[place] === text ? this.#values[place] : undefined
  }

  set(text: string, value: Value): void {
    const place = this.#placeOf(text)
    this.#texts[place] = text
    this.#values[place] = value
  }

  /** The place depends on the length and three characters. Texts that share a place are found in the map, at its cost. */
  #placeOf(text: string): number {
    const { length } = text
    const ends = text.charCodeAt(0) * 31 + text.charCodeAt(length - 1) * 7
    return (length * 13 + ends + text.charCodeAt(length >> 1) * 3) & this.#mask
  }
}
