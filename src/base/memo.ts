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
