/** What is spent of budgets, in memory that all threads share: a slot for each budget, holder and window. */
import type { SharedTable, TableShape } from './shared-table.ts'

export const spendField = {
  /** Leased, and what was spent when it was: the rest is what calls may reserve. */
  leased: 0,
  base: 1,
  spent: 2,
  estimated: 3,
  calls: 4,
  /** `spent` as the store has it; -1 until it has the row. */
  stored: 5,
  /** All gateways together, as of the last answer. */
  spentInAll: 6,
  others: 7,
  raised: 8,
  /** Of calls that wait for a lease: all, and the smallest. */
  needed: 9,
  least: 10,
  /** Time until which there is nothing to lease, unless a call ends. */
  dryUntil: 11,
  /** Calls that cost less than this are not kept from asking by it: what is left was too little for a larger one. */
  dryFrom: 18,
  /** 1 while the store does not answer. */
  away: 12,
  /** 1 while an ask is wanted or under way. */
  asking: 13,
  requestAt: 14,
  askedAt: 15,
  /** What calls have reserved since the last ask, and how much that is in a millisecond. */
  demand: 16,
  pace: 17,
} as const
/** Behind them, what calls of each thread have reserved. */
const fields = 19

/** More budgets of agents in use at once are refused. */
export const spendShape = (threads: number): TableShape => ({ slots: 32_768, fields: fields + threads })

/** Time constant of the measured pace, milliseconds. */
const memoryMs = 5_000
/** Without calls for so long, the lease is given back, milliseconds. */
const idleMs = 2_000

/** State of a budget, as this gateway knows it. */
export interface SpendState {
  /** By all gateways. */
  readonly spent: number
  /** By calls under way, here and in other gateways. */
  readonly reserved: number
  readonly raised: number
}

/** Call all methods with the lock of the table. All times are steady milliseconds. */
export class SpendSlots {
  readonly table: SharedTable
  /** All are idle: the gateway stops. */
  isClosing = false

  constructor(table: SharedTable) {
    this.table = table
  }

  get(slot: number, name: keyof typeof spendField): number {
    return this.table.get(slot, spendField[name])
  }

  set(slot: number, name: keyof typeof spendField, value: number): void {
    this.table.set(slot, spendField[name], value)
  }

  add(slot: number, name: keyof typeof spendField, change: number): void {
    this.set(slot, name, this.get(slot, name) + change)
  }

  /** Slot of a key that is used now; -1 when there is none. */
  claim(key: string, now: number): number {
    const known = this.table.find(key)
    const slot = known < 0 ? this.table.claim(key, other => this.isForgotten(other, now)) : known
    if (slot < 0) return slot
    if (this.get(slot, 'leased') === Number.NEGATIVE_INFINITY) {
      for (let n = 0; n < this.table.fields; n++) this.table.set(slot, n, 0)
      this.set(slot, 'stored', -1)
      this.set(slot, 'askedAt', now)
    }
    this.set(slot, 'requestAt', now)
    return slot
  }

  /** The store knows all of it, and nobody uses it. */
  isForgotten(slot: number, now: number): boolean {
    // An ask without an answer may have leased something.
    const isReported = this.isStored(slot) && this.get(slot, 'away') === 0
    return isReported && this.isIdle(slot, now) && this.get(slot, 'leased') === 0
  }

  isStored(slot: number): boolean {
    return this.get(slot, 'spent') === this.get(slot, 'stored')
  }

  isIdle(slot: number, now: number): boolean {
    const isOld = this.isClosing || now - this.get(slot, 'requestAt') > idleMs
    return isOld && this.reserved(slot) === 0 && this.get(slot, 'needed') === 0
  }

  /** What calls may reserve now. */
  free(slot: number): number {
    return this.get(slot, 'leased') - (this.get(slot, 'spent') - this.get(slot, 'base')) - this.reserved(slot)
  }

  /** What calls of all threads have reserved. */
  reserved(slot: number): number {
    let all = 0
    for (let n = fields; n < this.table.fields; n++) all += this.table.get(slot, n)
    return all
  }

  /** Changes what calls of this thread have reserved. */
  reserve(slot: number, change: number): void {
    const own = fields + this.table.thread
    this.table.set(slot, own, this.table.get(slot, own) + change)
  }

  /** What calls of a dead thread have reserved is spent. */
  spendReserved(slot: number, thread: number): void {
    const lost = Math.max(0, this.table.get(slot, fields + thread))
    this.table.set(slot, fields + thread, 0)
    this.add(slot, 'spent', lost)
    this.add(slot, 'estimated', lost)
  }

  /** A call waits for a lease of so much. */
  wait(slot: number, amount: number): void {
    const least = this.get(slot, 'least')
    this.add(slot, 'needed', amount)
    this.set(slot, 'least', least === 0 ? amount : Math.min(least, amount))
  }

  /** Measures the pace. Call it once for each ask. */
  measure(slot: number, now: number): void {
    const passed = now - this.get(slot, 'askedAt')
    if (passed <= 0) return
    const pace = this.get(slot, 'pace')
    const fresh = this.get(slot, 'demand') / passed
    this.set(slot, 'pace', pace + (fresh - pace) * (1 - Math.exp(-passed / memoryMs)))
    this.set(slot, 'demand', 0)
    this.set(slot, 'askedAt', now)
  }

  state(slot: number): SpendState {
    const unstored = this.get(slot, 'spent') - Math.max(0, this.get(slot, 'stored'))
    return {
      spent: this.get(slot, 'spentInAll') + unstored,
      reserved: this.get(slot, 'others') + this.reserved(slot),
      raised: this.get(slot, 'raised'),
    }
  }
}
