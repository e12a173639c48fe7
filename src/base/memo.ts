/**
 * Answers that are kept for what others name, such as addresses and fields: all are forgotten when it is full. To forget
 * the oldest alone costs 3 to 20 times as much, as a Map steps over each entry that was deleted before it. `LRUCache`
 * is for answers that are dear.
 */
export class Memo<K, V> extends Map<K, V> {
  readonly #max: number

  /** @param max entries */
  constructor(max: number) {
    super()
    this.#max = max
  }

  override set(key: K, value: V): this {
    if (this.size >= this.#max && !this.has(key)) this.clear()
    return super.set(key, value)
  }
}

/** The same function, which keeps its answers. */
export function memoized<K, V extends {}>(max: number, answer: (key: K) => V): (key: K) => V {
  const known = new Memo<K, V>(max)
  return key => {
    const before = known.get(key)
    if (before !== undefined) return before
    const made = answer(key)
    known.set(key, made)
    return made
  }
}

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
