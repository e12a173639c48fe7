/**
 * Amounts by key over all threads that share the table: requests under way of each agent, open connections of each address.
 * Each key has one number for each thread, which that thread alone changes.
 */
import type { SharedTable, TableShape } from './shared-table.ts'

export interface SharedAmount {
  /** Adds `amount` unless all threads together would then have more than `max`. False: nothing was added. */
  take(key: string, amount: number, max: number): boolean
  /** Subtracts an amount that this thread added before. */
  give(key: string, amount: number): void
  /** The amount of all threads together. */
  of(key: string): number
  /** Subtracts everything that a dead thread took. */
  forget(thread: number): void
}

/** More keys than this in use at once are refused. */
export function amountShape(threads: number): TableShape {
  return { slots: 16_384, fields: threads }
}

/** @param thread number of this thread, from 0 */
export function createSharedAmount(table: SharedTable, thread: number): SharedAmount {
  const sum = (slot: number): number => {
    let all = 0
    for (let field = 0; field < table.fields; field++) all += Math.max(0, table.get(slot, field))
    return all
  }
  const isIdle = (slot: number) => sum(slot) === 0
  const add = (slot: number, change: number) => table.set(slot, thread, Math.max(0, table.get(slot, thread)) + change)

  return {
    take(key, amount, max) {
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
    give(key, amount) {
      // No lock: no other thread takes the slot of a key that has an amount, or writes this thread's number in it.
      const slot = table.find(key)
      if (slot >= 0) add(slot, -amount)
    },
    of(key) {
      const slot = table.find(key)
      return slot < 0 ? 0 : sum(slot)
    },
    forget: dead =>
      table.locked(() => {
        for (let slot = 0; slot < table.slots; slot++) if (!table.isFree(slot)) table.set(slot, dead, 0)
      }),
  }
}
