/** What is spent of budgets, in memory that all threads share: a slot for each budget, holder and window. */
import type { SharedTable, TableShape } from './shared-table.ts'

/** Numbers, not names: a call reads and writes some twenty of them. */
export const field = {
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
  /** 1 while the limit is far: the last lease was all that was asked for, and half of the limit is left. */
  calm: 19,
} as const
type SpendField = (typeof field)[keyof typeof field]
/** Behind them, what calls of each thread have reserved. */
const fields = 20

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

  get(slot: number, of: SpendField): number {
    return this.table.get(slot, of)
  }

  set(slot: number, of: SpendField, value: number): void {
    this.table.set(slot, of, value)
  }

  add(slot: number, of: SpendField, change: number): void {
    this.table.set(slot, of, this.table.get(slot, of) + change)
  }

  /** Slot of a key that is used now; -1 when there is none. */
  claim(key: string, now: number): number {
    const known = this.table.find(key)
    const slot = known < 0 ? this.#claimNew(key, now) : known
    if (slot < 0) return slot
    if (this.get(slot, field.leased) === Number.NEGATIVE_INFINITY) {
      for (let n = 0; n < this.table.fields; n++) this.table.set(slot, n, 0)
      this.set(slot, field.stored, -1)
      this.set(slot, field.askedAt, now)
    }
    this.set(slot, field.requestAt, now)
    return slot
  }

  #claimNew(key: string, now: number): number {
    return this.table.claim(key, other => this.isForgotten(other, now))
  }

  /** The store knows all of it, and nobody uses it. */
  isForgotten(slot: number, now: number): boolean {
    // An ask without an answer may have leased something.
    const isReported = this.isStored(slot) && this.get(slot, field.away) === 0
    return isReported && this.isIdle(slot, now) && this.get(slot, field.leased) === 0
  }

  isStored(slot: number): boolean {
    return this.get(slot, field.spent) === this.get(slot, field.stored)
  }

  isIdle(slot: number, now: number): boolean {
    const isOld = this.isClosing || now - this.get(slot, field.requestAt) > idleMs
    return isOld && this.reserved(slot) === 0 && this.get(slot, field.needed) === 0
  }

  /** What calls may reserve now. */
  free(slot: number): number {
    return (
      this.get(slot, field.leased) - (this.get(slot, field.spent) - this.get(slot, field.base)) - this.reserved(slot)
    )
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
    this.add(slot, field.spent, lost)
    this.add(slot, field.estimated, lost)
  }

  /** A call waits for a lease of so much. */
  wait(slot: number, amount: number): void {
    const least = this.get(slot, field.least)
    this.add(slot, field.needed, amount)
    this.set(slot, field.least, least === 0 ? amount : Math.min(least, amount))
  }

  /** Measures the pace. Call it once for each ask. */
  measure(slot: number, now: number): void {
    const passed = now - this.get(slot, field.askedAt)
    if (passed <= 0) return
    const pace = this.get(slot, field.pace)
    const fresh = this.get(slot, field.demand) / passed
    this.set(slot, field.pace, pace + (fresh - pace) * (1 - Math.exp(-passed / memoryMs)))
    this.set(slot, field.demand, 0)
    this.set(slot, field.askedAt, now)
  }

  state(slot: number): SpendState {
    const unstored = this.get(slot, field.spent) - Math.max(0, this.get(slot, field.stored))
    return {
      spent: this.get(slot, field.spentInAll) + unstored,
      reserved: this.get(slot, field.others) + this.reserved(slot),
      raised: this.get(slot, field.raised),
    }
  }
}
