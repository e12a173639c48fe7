/** Counts open connections over all threads that share the table: one number a thread, which that thread alone changes. */
import type { SharedTable, TableShape } from './shared-table.ts'

export interface ConnectionLimits {
  /** Of all peers together. */
  readonly all: number
  /** Of one peer; 0 is no limit. */
  readonly perPeer: number
}

export interface ConnectionCount {
  /**
   * Counts a connection if there is room for it.
   *
   * @param peer who it is counted for; undefined: in the total alone
   */
  enter(peer: string | undefined): boolean
  /** Each that entered leaves once. */
  leave(peer: string | undefined): void
  /** The connections of a thread that has died. */
  forget(thread: number): void
}

/** A peer beyond as many, all connected at once, gets no connection. */
export function connectionShape(threads: number): TableShape {
  return { slots: 16_384, fields: threads }
}

/** Key of the total. No peer is called so. */
const total = '*'

/** @param thread number of this thread, from 0 */
export function createConnectionCount(limits: ConnectionLimits, table: SharedTable, thread: number): ConnectionCount {
  const sum = (slot: number): number => {
    let count = 0
    for (let field = 0; field < table.fields; field++) count += Math.max(0, table.get(slot, field))
    return count
  }
  const add = (slot: number, change: number) => table.set(slot, thread, Math.max(0, table.get(slot, thread)) + change)
  const isIdle = (slot: number) => sum(slot) === 0

  const admit = (peer: string | undefined): boolean => {
    const ofAll = table.claim(total, isIdle)
    if (ofAll < 0 || sum(ofAll) >= limits.all) return false
    if (peer !== undefined && limits.perPeer > 0) {
      const ofPeer = table.claim(peer, isIdle)
      if (ofPeer < 0 || sum(ofPeer) >= limits.perPeer) return false
      add(ofPeer, 1)
    }
    add(ofAll, 1)
    return true
  }

  const remove = (key: string): void => {
    const slot = table.find(key)
    if (slot < 0) return
    add(slot, -1)
    if (isIdle(slot)) table.release(slot)
  }

  return {
    enter: peer => table.locked(() => admit(peer)),
    leave: peer =>
      table.locked(() => {
        remove(total)
        if (peer !== undefined && limits.perPeer > 0) remove(peer)
      }),
    forget: dead =>
      table.locked(() => {
        for (let slot = 0; slot < table.slots; slot++) {
          if (table.isFree(slot)) continue
          table.set(slot, dead, 0)
          if (isIdle(slot)) table.release(slot)
        }
      }),
  }
}
