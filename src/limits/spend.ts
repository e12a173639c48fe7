/**
 * What is spent of budgets, in all threads of a gateway. A gateway leases a part of what is left from the row in the store, and
 * calls reserve theirs of it before they are sent: in all of their budgets, or in none. When a call ends, it is charged with
 * what it cost. A crash loses nothing: what was leased then counts as spent.
 *
 * Calls that run at the same time cannot exceed the limit by more than their costs exceed what they reserved, and by one more
 * call: the smallest of those that wait passes while anything is left.
 */
import type { SharedTable } from './shared-table.ts'
import type { SpendAnswer, SpendAsk } from './spend-lease.ts'
import { field, SpendSlots, type SpendState } from './spend-slots.ts'

/** A gateway leases ahead what its calls reserve in this time, milliseconds. */
const supplyMs = 5_000
/** Time between two reports on what was spent, milliseconds. */
const reportMs = 1_000
/** The same while the limit is far, and no other gateway counts in the row. */
const calmReportMs = 4_000
/** A gateway leases again when what is left lasts less than this, milliseconds; and the same while the limit is far. */
const marginMs = supplyMs / 2
const calmMarginMs = supplyMs - calmReportMs
/** The limit is far when this share of it is left. */
const calmShare = 0.5
/** Time after which it is asked again whether a limit was raised, milliseconds. */
const dryMs = 1_000
/** What rules read is as old as this at most, milliseconds. */
const freshMs = 2_000

/** What one call takes of one budget. */
export interface SpendCharge {
  /** `keyOf` of the row. */
  readonly key: string
  /** What is reserved, above 0. */
  readonly amount: number
  /** Undefined: it is only counted. */
  readonly limit: number | undefined
  /** It passes beyond the limit. */
  readonly passes: boolean
}

/** Why a call must not be sent. `away`: the store does not answer. `full`: too many budgets are in use. */
export type SpendBar = 'exceeded' | 'reserved' | 'away' | 'full'

/** Undefined: all is reserved. Keys: these must be asked for first. */
export type Reserved = undefined | readonly string[] | { readonly charge: SpendCharge; readonly bar: SpendBar }

export interface SpendEnd {
  readonly cost: number
  readonly isEstimated: boolean
  readonly isCall: boolean
}

/** How an ask is made for a key. */
export interface SpendTerms {
  readonly limit: number | undefined
  readonly exact: boolean
}

export interface SpendBookOptions {
  readonly table: SharedTable
  /** Called when a lease should be asked for, or what was spent is to be told. */
  readonly onNeed: (key: string) => void
}

/** All times are steady milliseconds. */
export class SpendBook {
  readonly #slots: SpendSlots
  readonly #onNeed: (key: string) => void
  /** Slots of the call that is being reserved. */
  readonly #claimed: number[] = []

  constructor({ table, onNeed }: SpendBookOptions) {
    this.#slots = new SpendSlots(table)
    this.#onNeed = onNeed
  }

  /** Reserves a call in all of its budgets, or in none. */
  reserve(charges: readonly SpendCharge[], now: number): Reserved {
    // Without closures and lists: each call of an agent with a budget comes here.
    const { table } = this.#slots
    const slots = this.#claimed
    table.lock()
    try {
      for (let n = 0; n < charges.length; n++) {
        const slot = this.#claim(charges[n]!.key, now)
        if (slot < 0) return { charge: charges[n]!, bar: 'full' }
        slots[n] = slot
      }
      return this.#barOf(charges, slots, now) ?? this.#reserveIn(charges, slots)
    } finally {
      table.unlock()
    }
  }

  #claim(key: string, now: number): number {
    const slot = this.#slots.claim(key, now)
    if (slot >= 0 && this.#slots.get(slot, field.stored) < 0) this.#need(slot, key)
    return slot
  }

  /** What keeps the call from being reserved: a bar, or keys that are to be asked for. */
  #barOf(charges: readonly SpendCharge[], slots: readonly number[], now: number): Reserved {
    let waiting: number[] | undefined
    for (let n = 0; n < charges.length; n++) {
      const charge = charges[n]!
      const slot = slots[n]!
      if (charge.passes || charge.limit === undefined || charge.amount <= this.#slots.free(slot)) continue
      const bar = this.#barAt(slot, charge, now)
      if (bar === 'away') this.#need(slot, charge.key)
      if (bar !== undefined) return { charge, bar }
      waiting ??= []
      waiting.push(n)
    }
    if (waiting === undefined) return undefined
    for (const n of waiting) this.#slots.wait(slots[n]!, charges[n]!.amount)
    return waiting.map(n => charges[n]!.key)
  }

  #barAt(slot: number, { limit = 0, amount }: SpendCharge, now: number): SpendBar | undefined {
    if (this.#slots.get(slot, field.away) !== 0) return 'away'
    if (now >= this.#slots.get(slot, field.dryUntil) || amount < this.#slots.get(slot, field.dryFrom)) return undefined
    const { spent, raised } = this.#slots.state(slot)
    return spent >= limit + raised ? 'exceeded' : 'reserved'
  }

  #reserveIn(charges: readonly SpendCharge[], slots: readonly number[]): undefined {
    for (let n = 0; n < charges.length; n++) {
      const { key, amount } = charges[n]!
      const slot = slots[n]!
      this.#slots.reserve(slot, amount)
      this.#slots.add(slot, field.demand, amount)
      const margin = this.#slots.get(slot, field.calm) === 0 ? marginMs : calmMarginMs
      if (this.#slots.free(slot) < this.#slots.get(slot, field.pace) * margin) this.#need(slot, key)
    }
  }

  #need(slot: number, key: string): void {
    if (this.#slots.get(slot, field.asking) !== 0) return
    this.#slots.set(slot, field.asking, 1)
    this.#onNeed(key)
  }

  /** Ends what `reserve` reserved in this thread. Call it once for each. */
  settle({ key, amount }: Pick<SpendCharge, 'key' | 'amount'>, { cost, isEstimated, isCall }: SpendEnd): void {
    const slots = this.#slots
    slots.table.lock()
    try {
      const slot = slots.table.find(key)
      // A slot is kept while anything is reserved in it.
      if (slot < 0) return
      slots.reserve(slot, -amount)
      slots.add(slot, field.spent, cost)
      if (isEstimated) slots.add(slot, field.estimated, cost)
      if (isCall) slots.add(slot, field.calls, 1)
      if (cost < amount) slots.set(slot, field.dryUntil, 0)
    } finally {
      slots.table.unlock()
    }
  }

  /** Undefined: the budget was not used lately. */
  stateOf(key: string): SpendState | undefined {
    return this.#locked(() => {
      const slot = this.#slots.table.find(key)
      return slot < 0 || this.#slots.get(slot, field.stored) < 0 ? undefined : this.#slots.state(slot)
    })
  }

  /** Whether calls have spent what the store was not told yet. */
  isUnreported(key: string): boolean {
    return this.#locked(() => {
      const slot = this.#slots.table.find(key)
      return slot >= 0 && this.#slots.get(slot, field.stored) >= 0 && !this.#slots.isStored(slot)
    })
  }

  /** The state for rules, which must not read what is old. Undefined: the key must be asked for first. */
  look(key: string, now: number): SpendState | undefined {
    return this.#locked(() => {
      const slots = this.#slots
      const slot = this.#claim(key, now)
      if (slot < 0) return undefined
      const age = now - slots.get(slot, field.askedAt)
      if (age >= reportMs) this.#need(slot, key)
      const isKnown = slots.get(slot, field.stored) >= 0 && slots.get(slot, field.away) === 0 && age <= freshMs
      return isKnown ? slots.state(slot) : undefined
    })
  }

  /**
   * The ask for a key; undefined when there is nothing to tell and the key is forgotten. Each ask ends with `accept` or
   * `miss`. Until then calls reserve only of what is kept in any case.
   */
  ask(key: string, terms: SpendTerms, now: number): SpendAsk | undefined {
    return this.#locked(() => {
      const slot = this.#slots.table.find(key)
      if (slot < 0) return undefined
      if (!this.#slots.isForgotten(slot, now)) return { key, ...terms, ...this.#askAt(slot, now) }
      this.#slots.table.release(slot)
      return undefined
    })
  }

  #askAt(slot: number, now: number): Omit<SpendAsk, 'key' | keyof SpendTerms> {
    const slots = this.#slots
    slots.measure(slot, now)
    const reserved = slots.reserved(slot)
    const needed = slots.get(slot, field.needed)
    const ahead = slots.isIdle(slot, now) ? 0 : Math.ceil(slots.get(slot, field.pace) * supplyMs)
    const least = slots.get(slot, field.least)
    const free = Math.max(0, slots.free(slot))
    // What is too little for each call that waits would be so for ever: other gateways may have as little, and none is idle.
    const kept = needed > 0 && free < least ? 0 : Math.min(free, needed + ahead)
    const begins = slots.get(slot, field.stored) < 0
    const spent = begins ? 0 : slots.get(slot, field.spent)
    slots.set(slot, field.leased, reserved + kept)
    slots.set(slot, field.base, spent)
    slots.set(slot, field.needed, 0)
    slots.set(slot, field.least, 0)
    slots.set(slot, field.asking, 1)
    return {
      ...{ begins, spent, keep: reserved + kept, reserved, needed, least, ahead },
      estimated: begins ? 0 : slots.get(slot, field.estimated),
      calls: begins ? 0 : slots.get(slot, field.calls),
    }
  }

  accept(ask: SpendAsk, { leased, spent, others, raised }: SpendAnswer, now: number): void {
    this.#change(ask.key, slot => {
      const slots = this.#slots
      slots.set(slot, field.leased, leased)
      slots.set(slot, field.stored, ask.spent)
      slots.set(slot, field.spentInAll, spent)
      slots.set(slot, field.others, others)
      slots.set(slot, field.raised, raised)
      slots.set(slot, field.asking, 0)
      slots.set(slot, field.away, 0)
      const { limit, exact, needed, reserved, least, ahead } = ask
      const left = limit === undefined ? Number.POSITIVE_INFINITY : limit + raised - spent - others - leased
      const isWhole = leased >= reserved + needed + ahead
      slots.set(slot, field.calm, isWhole && left >= calmShare * ((limit ?? 0) + raised) ? 1 : 0)
      const isDry = limit !== undefined && spent + others + leased >= limit + raised
      const isTooLittle = exact && needed > 0 && leased - reserved < least
      slots.set(slot, field.dryUntil, isDry || isTooLittle ? now + dryMs : 0)
      slots.set(slot, field.dryFrom, isDry ? 0 : least)
    })
  }

  /** The ask was not answered: what was kept stays leased. */
  miss({ key }: SpendAsk): void {
    this.#change(key, slot => {
      this.#slots.set(slot, field.asking, 0)
      this.#slots.set(slot, field.away, 1)
    })
  }

  /** The answer takes long: until it comes, calls beyond what is leased are refused. */
  goAlone(key: string): void {
    this.#change(key, slot => this.#slots.set(slot, field.away, 1))
  }

  /** Whether the store is to be told about it. @param isAlone no other gateway counts in the rows */
  isDue(key: string, now: number, isAlone: boolean): boolean {
    const slots = this.#slots
    const slot = slots.table.find(key)
    if (slot < 0 || slots.isClosing) return true
    const isIdle = slots.isIdle(slot, now)
    if (!isIdle && slots.isStored(slot)) return false
    const every = isAlone && !isIdle && slots.get(slot, field.calm) !== 0 ? calmReportMs : reportMs
    // All keys at the turn of the same second: one statement tells them all.
    return Math.floor(now / every) > Math.floor(slots.get(slot, field.askedAt) / every)
  }

  /** From now on all keys are idle: the gateway stops. */
  close(): void {
    this.#slots.isClosing = true
  }

  /** What calls of a dead thread have reserved counts as spent: they may have been sent. */
  forget(thread: number): void {
    this.#locked(() => {
      const { table } = this.#slots
      for (let slot = 0; slot < table.slots; slot++) {
        if (!table.isFree(slot)) this.#slots.spendReserved(slot, thread)
      }
    })
  }

  #locked<T>(work: () => T): T {
    return this.#slots.table.locked(work)
  }

  #change(key: string, work: (slot: number) => void): void {
    this.#locked(() => {
      const slot = this.#slots.table.find(key)
      if (slot >= 0) work(slot)
    })
  }
}
