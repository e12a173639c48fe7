/** Numbers in memory that all threads share: a table by key, and amounts kept in one. */
import { Memo } from '../base/memo.ts'

/**
 * A table of numbers by key that all threads share: a fixed number of slots in one SharedArrayBuffer, found by a hash of
 * the key, and one lock. Work between `lock` and `unlock` takes well under a microsecond, so a thread that finds the lock
 * taken waits for it. The lock of a thread that died is freed by `releaseLock`, or by a thread that waited long enough.
 */
export interface TableShape {
  /** A power of two. */
  readonly slots: number
  /** Numbers kept for each key. */
  readonly fields: number
}

/** Slots in which a key may be, from the one of its hash on. */
const reach = 32
/** After so many waits of a tenth of a millisecond the holder of the lock counts as dead: half a second or more. */
const maxSpins = 5_000
/** Initial value of each field of a key. */
const initial = Number.NEGATIVE_INFINITY

/** Words of the head: who holds the lock, slots in use, and two random seeds, so that callers cannot make keys collide. */
const lockWord = 0
const usedWord = 1
const seedWord = 2
const headWords = 4

interface TableKey {
  readonly low: number
  readonly high: number
  /** Slot in which the key was last found; -1 at first. */
  slot: number
}

/** Memory for a table. `seed` are 8 random bytes. */
export function createTableMemory({ slots, fields }: TableShape, seed: Uint8Array): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(headWords * 4 + slots * (8 + fields * 8))
  new Uint8Array(memory, seedWord * 4, 8).set(seed.subarray(0, 8))
  return memory
}

export class SharedTable {
  readonly slots: number
  readonly fields: number
  readonly thread: number
  readonly #head: Int32Array<SharedArrayBuffer>
  /** Two words a slot, both zero when it is free. */
  readonly #keys: Int32Array<SharedArrayBuffer>
  readonly #values: Float64Array<SharedArrayBuffer>
  /** Hashes and slots of the keys that this thread has used. */
  readonly #hashes: Memo<string, TableKey>

  /** @param thread number of this thread, from 0; no two at a time have the same */
  constructor(memory: SharedArrayBuffer, shape: TableShape, thread: number) {
    this.slots = shape.slots
    this.fields = shape.fields
    this.thread = thread
    this.#hashes = new Memo(shape.slots)
    this.#head = new Int32Array(memory, 0, headWords)
    this.#values = new Float64Array(memory, headWords * 4, shape.slots * shape.fields)
    this.#keys = new Int32Array(memory, headWords * 4 + shape.slots * shape.fields * 8, shape.slots * 2)
  }

  /** A number for a key, the same in all threads. Two keys have the same one only by chance. */
  hashOf(key: string): number {
    return this.#placeOf(key).low
  }

  get used(): number {
    return Atomics.load(this.#head, usedWord)
  }

  /** Waits until no other thread works on the table. */
  lock(): void {
    const mine = this.thread + 1
    let last = 0
    let waits = 0
    for (let tries = 1; ; tries++) {
      const holder = Atomics.compareExchange(this.#head, lockWord, 0, mine)
      if (holder === 0) return
      // Its holder is done within a microsecond, unless the system took the processor from it.
      if (tries % 64 !== 0) continue
      waits = holder === last ? waits + 1 : 0
      last = holder
      // The holder has died. The thread that would free its lock may be waiting here as well.
      if (waits > maxSpins && Atomics.compareExchange(this.#head, lockWord, holder, mine) === holder) return
      Atomics.wait(this.#head, lockWord, holder, 0.1)
    }
  }

  unlock(): void {
    Atomics.compareExchange(this.#head, lockWord, this.thread + 1, 0)
  }

  locked<T>(work: () => T): T {
    this.lock()
    try {
      return work()
    } finally {
      this.unlock()
    }
  }

  /** Takes the lock from a thread that has died. */
  releaseLock(thread: number): void {
    Atomics.compareExchange(this.#head, lockWord, thread + 1, 0)
  }

  /** Slot of the key; -1 when it has none. Without the lock it is a hint: another thread may be changing it. */
  find(key: string): number {
    const place = this.#placeOf(key)
    if (place.slot >= 0 && this.#holds(place.slot, place)) return place.slot
    for (let step = 0; step < reach; step++) {
      const slot = this.#slotAt(place, step)
      if (this.#holds(slot, place)) {
        place.slot = slot
        return slot
      }
    }
    return -1
  }

  /**
   * Slot of the key, a new one when it has none. Only with the lock.
   *
   * @param isIdle whether the key in a slot can be forgotten, so that the slot is free
   * @returns -1 when every slot that the key may have is in use
   */
  claim(key: string, isIdle: (slot: number) => boolean): number {
    const found = this.find(key)
    if (found >= 0) return found
    const place = this.#placeOf(key)
    for (let step = 0; step < reach; step++) {
      const slot = this.#slotAt(place, step)
      const isFree = this.isFree(slot)
      if (!isFree && !isIdle(slot)) continue
      if (isFree) this.#head[usedWord]! += 1
      this.#values.fill(initial, slot * this.fields, (slot + 1) * this.fields)
      Atomics.store(this.#keys, slot * 2, place.low)
      Atomics.store(this.#keys, slot * 2 + 1, place.high)
      place.slot = slot
      return slot
    }
    return -1
  }

  /** Frees a slot in use. Only with the lock. */
  release(slot: number): void {
    Atomics.store(this.#keys, slot * 2, 0)
    Atomics.store(this.#keys, slot * 2 + 1, 0)
    this.#head[usedWord]! -= 1
  }

  isFree(slot: number): boolean {
    return this.#keys[slot * 2] === 0 && this.#keys[slot * 2 + 1] === 0
  }

  /** Only with the lock. */
  get(slot: number, field: number): number {
    return this.#values[slot * this.fields + field]!
  }

  /** Only with the lock. */
  set(slot: number, field: number, value: number): void {
    this.#values[slot * this.fields + field] = value
  }

  #holds(slot: number, { low, high }: TableKey): boolean {
    return Atomics.load(this.#keys, slot * 2) === low && Atomics.load(this.#keys, slot * 2 + 1) === high
  }

  #slotAt({ low }: TableKey, step: number): number {
    return ((low >>> 0) + step) & (this.slots - 1)
  }

  #placeOf(key: string): TableKey {
    const known = this.#hashes.get(key)
    if (known !== undefined) return known
    const low = hash(key, this.#head[seedWord]!)
    const high = hash(key, this.#head[seedWord + 1]!)
    // Both zero marks a slot as free.
    const place = { low: low === 0 && high === 0 ? 1 : low, high, slot: -1 }
    this.#hashes.set(key, place)
    return place
  }
}

/** MurmurHash3 (Austin Appleby, public domain), 32 bits, over UTF-16 code units. */
function hash(text: string, seed: number): number {
  let h = seed
  for (let i = 0; i < text.length; i++) {
    let k = Math.imul(text.charCodeAt(i), 0xcc9e2d51)
    k = (k << 15) | (k >>> 17)
    h ^= Math.imul(k, 0x1b873593)
    h = (h << 13) | (h >>> 19)
    h = (Math.imul(h, 5) + 0xe6546b64) | 0
  }
  h ^= text.length
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}

/**
 * Amounts by key over all threads that share the table: requests under way of each agent, open connections of each address.
 * Each key has one number for each thread, which that thread alone changes.
 */
export type SharedAmount = ReturnType<typeof createSharedAmount>

/** More keys than this in use at once are refused. */
export function amountShape(threads: number): TableShape {
  return { slots: 16_384, fields: threads }
}

/** @param thread number of this thread, from 0 */
export function createSharedAmount(table: SharedTable, thread: number) {
  const sum = (slot: number): number => {
    let all = 0
    for (let field = 0; field < table.fields; field++) all += Math.max(0, table.get(slot, field))
    return all
  }
  const isIdle = (slot: number) => sum(slot) === 0
  const add = (slot: number, change: number) => table.set(slot, thread, Math.max(0, table.get(slot, thread)) + change)

  return {
    /** Adds `amount` unless all threads together would then have more than `max`. False: nothing was added. */
    take(key: string, amount: number, max: number): boolean {
      table.lock()
      try {
        const slot = table.claim(key, isIdle)
        if (slot < 0 || sum(slot) + amount > max) return false
        add(slot, amount)
        return true
      } finally {
        table.unlock()
      }
    },
    /** Subtracts an amount that this thread added before. */
    give(key: string, amount: number) {
      // No lock: no other thread takes the slot of a key that has an amount, or writes this thread's number in it.
      const slot = table.find(key)
      if (slot >= 0) add(slot, -amount)
    },
    /** The amount of all threads together. */
    of(key: string): number {
      const slot = table.find(key)
      return slot < 0 ? 0 : sum(slot)
    },
    /** Subtracts everything that a dead thread took. */
    forget: (dead: number) =>
      table.locked(() => {
        for (let slot = 0; slot < table.slots; slot++) if (!table.isFree(slot)) table.set(slot, dead, 0)
      }),
  }
}
