/**
 * Circuit breaker per key, the same for all threads that share the table. The trip rule (failures within a window) is
 * apart from the state. Every permit is returned with an outcome. After the time of an open circuit one probe is let
 * out; when it has said nothing for as long again, its thread may have died, and another may go.
 */
import type { SharedTable, TableShape } from './shared-table.ts'

export interface BreakerSettings {
  /** Each takes a number of every slot of the table. */
  readonly failures: number
  readonly windowMs: number
  readonly openMs: number
}

/** `neutral`: nothing was learnt of the upstream (the client left, the gateway refused). */
export type Outcome = 'success' | 'failure' | 'neutral'

/** Leave to send one request; must be returned with its outcome. */
export interface Permit {
  readonly key: string
  readonly probe: boolean
}

export interface Breaker {
  /** A permit, or the milliseconds to wait. `now` is steady milliseconds. */
  acquire(key: string, now: number): Permit | number
  release(permit: Permit, outcome: Outcome, now: number): void
  /** Forgets keys whose failures are too long ago to count. Call every second or so, in one thread. */
  sweep(now: number): void
  /** Keys that failed lately. */
  readonly size: number
  /** How many circuits are open. */
  openAt(now: number): number
}

/** Times are steady milliseconds. The first is when a request may pass again: -Infinity while the circuit is closed. */
const opensField = 0
/** 1 while a probe is out. */
const probeField = 1
/** How many failures were noted, of which the last ones are kept, in a ring. */
const countField = 2
const ringField = 3

/** Numbers that the table may take, if that leaves room for enough keys. */
const mostNumbers = 2 ** 18
const mostKeys = 8_192
const fewestKeys = 64

/** Holds only keys that failed: a healthy upstream costs one look at a number. */
export function breakerShape(failures: number): TableShape {
  const fields = ringField + failures
  const slots = 2 ** Math.floor(Math.log2(mostNumbers / fields))
  return { slots: Math.max(fewestKeys, Math.min(mostKeys, slots)), fields }
}

/** What a caller is told to wait while a probe is out, milliseconds. */
const probeWaitMs = 1_000

export function createBreaker(settings: BreakerSettings, table: SharedTable): Breaker {
  return new SharedBreaker(settings, table)
}

class SharedBreaker implements Breaker {
  readonly #settings: BreakerSettings
  readonly #table: SharedTable

  constructor(settings: BreakerSettings, table: SharedTable) {
    this.#settings = settings
    this.#table = table
  }

  get size(): number {
    return this.#table.used
  }

  openAt(now: number): number {
    if (this.#table.used === 0) return 0
    let open = 0
    for (let slot = 0; slot < this.#table.slots; slot++) {
      if (!this.#table.isFree(slot) && this.#table.get(slot, opensField) > now) open += 1
    }
    return open
  }

  acquire(key: string, now: number): Permit | number {
    if (this.#table.used === 0 || this.#table.find(key) < 0) return { key, probe: false }
    return this.#table.locked(() => this.#admit(key, now))
  }

  release(permit: Permit, outcome: Outcome, now: number): void {
    if (outcome === 'failure') this.#table.locked(() => this.#fail(permit, now))
    else if (permit.probe) this.#table.locked(() => this.#endProbe(permit.key, outcome, now))
  }

  sweep(now: number): void {
    if (this.#table.used === 0) return
    for (let slot = 0; slot < this.#table.slots; slot++) {
      if (!this.#table.isFree(slot)) this.#table.locked(() => this.#forget(slot, now))
    }
  }

  #admit(key: string, now: number): Permit | number {
    const table = this.#table
    const slot = table.find(key)
    const opens = slot < 0 ? Number.NEGATIVE_INFINITY : table.get(slot, opensField)
    if (opens === Number.NEGATIVE_INFINITY) return { key, probe: false }
    if (now < opens) return table.get(slot, probeField) === 1 ? probeWaitMs : opens - now
    table.set(slot, opensField, now + this.#settings.openMs)
    table.set(slot, probeField, 1)
    return { key, probe: true }
  }

  #fail({ key, probe }: Permit, now: number): void {
    const table = this.#table
    // When every place is taken by others that fail, one of them is forgotten.
    const free = table.claim(key, slot => this.#isOver(slot, now))
    const slot = free < 0 ? table.claim(key, () => true) : free
    const isOpen = table.get(slot, opensField) !== Number.NEGATIVE_INFINITY
    if (probe || table.get(slot, probeField) === 1) this.#open(slot, now)
    else if (!isOpen && this.#note(slot, now)) this.#open(slot, now)
  }

  /** Notes a failure; whether it is one too many. */
  #note(slot: number, now: number): boolean {
    const { failures, windowMs } = this.#settings
    const count = Math.max(0, this.#table.get(slot, countField))
    this.#table.set(slot, ringField + (count % failures), now)
    this.#table.set(slot, countField, count + 1)
    const oldest = this.#table.get(slot, ringField + ((count + 1) % failures))
    return oldest > now - windowMs
  }

  #open(slot: number, now: number): void {
    this.#table.set(slot, opensField, now + this.#settings.openMs)
    this.#table.set(slot, probeField, 0)
  }

  #endProbe(key: string, outcome: Outcome, now: number): void {
    const slot = this.#table.find(key)
    if (slot < 0 || this.#table.get(slot, probeField) !== 1) return
    if (outcome === 'success') {
      this.#table.release(slot)
      return
    }
    // The probe said nothing: the next request probes again.
    this.#table.set(slot, opensField, now)
    this.#table.set(slot, probeField, 0)
  }

  #forget(slot: number, now: number): void {
    if (!this.#table.isFree(slot) && this.#isOver(slot, now)) this.#table.release(slot)
  }

  /** Whether nothing that is noted counts any more: the last failure, or the end of the time that it was open for. */
  #isOver(slot: number, now: number): boolean {
    const { failures, windowMs } = this.#settings
    const last = Math.max(0, this.#table.get(slot, countField) - 1)
    const latest = Math.max(this.#table.get(slot, opensField), this.#table.get(slot, ringField + (last % failures)))
    return latest <= now - windowMs
  }
}
