/** An entry of a `SlotList`, which sets its slot. */
export interface Slotted {
  slot: number
}

/**
 * Entries that come and go with each connection or request, in no order. A Map or Set would leave a chain of old tables behind:
 * once one of them is in the old generation, each keeps the next and all that was in it alive until a full collection.
 */
export class SlotList<T extends Slotted> {
  readonly #entries: T[] = []

  get size(): number {
    return this.#entries.length
  }

  add(entry: T): void {
    entry.slot = this.#entries.push(entry) - 1
  }

  /** Does nothing when the entry is not in the list. */
  remove(entry: T): void {
    if (this.#entries[entry.slot] !== entry) return
    const last = this.#entries.pop()
    if (last === undefined || last === entry) return
    this.#entries[entry.slot] = last
    last.slot = entry.slot
  }

  /** A copy: entries may be removed meanwhile. */
  all(): T[] {
    return this.#entries.slice()
  }
}
