/** What the gateway was given for as long as it needs it, such as tokens of Vault, and gives back then. */
import type { Clock } from '../runtime/clock.ts'

/** Requests may still be under way with what was replaced, milliseconds. */
const graceMs = 60_000
/** How long the end of the gateway waits for it, milliseconds. */
const closeMs = 3_000

export type GiveBack = (signal: AbortSignal) => Promise<unknown>

export class GivenBack {
  readonly #clock: Pick<Clock, 'steady'>
  /** In use, by name. */
  readonly #inUse = new Map<string, GiveBack>()
  readonly #replaced = new Map<GiveBack, number>()

  constructor(clock: Pick<Clock, 'steady'>) {
    this.#clock = clock
  }

  /** Until another one has the name, or the gateway stops. */
  keep(name: string, give: GiveBack): void {
    const before = this.#inUse.get(name)
    if (before !== undefined) this.later(before)
    this.#inUse.set(name, give)
  }

  /** It is not used any more. */
  later(give: GiveBack): void {
    this.#replaced.set(give, this.#clock.steady() + graceMs)
  }

  /** Call about every second. */
  sweep(): void {
    const now = this.#clock.steady()
    for (const [give, at] of this.#replaced) {
      if (now < at) continue
      this.#replaced.delete(give)
      void end(give)
    }
  }

  /** Gives back all that is left. */
  async close(): Promise<void> {
    const left = [...this.#replaced.keys(), ...this.#inUse.values()]
    this.#replaced.clear()
    this.#inUse.clear()
    await Promise.all(left.map(end))
  }
}

/** Its server ends it by itself, later. */
const end = (give: GiveBack): Promise<unknown> => give(AbortSignal.timeout(closeMs)).catch(() => {})
