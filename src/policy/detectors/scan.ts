import type { Budget, Work } from '../values/work.ts'
import type { Text } from './bytes.ts'

/** The finding that counts: of all detectors that fire, the one that is first in the order of the table. */
export class Findings {
  rank = Number.POSITIVE_INFINITY
  id: string | undefined = undefined

  note({ rank, id }: Ranked): void {
    if (rank >= this.rank) return
    this.rank = rank
    this.id = id
  }
}

/** A detector with its place in the order. Detectors of one rank are told apart by their place in the text. */
export interface Ranked {
  readonly rank: number
  readonly id: string
}

/** Looks for several detectors in one pass over a text, whose parts may be looked at in different turns. */
export interface Pass {
  /** Rank of the first detector it looks for. */
  readonly best: number
  /**
   * Looks at the places from `from` on and before `to` where a finding can begin, or its main character can stand.
   *
   * @returns where to go on: `to` or later
   */
  run(text: Text, from: number, to: number, found: Findings): number
}

/** One search over one text. */
export class Scan implements Work {
  readonly #passes: readonly Pass[]
  readonly #text: Text
  readonly #found = new Findings()
  #pass = 0
  #at = 0

  constructor(passes: readonly Pass[], text: Text) {
    this.#passes = passes
    this.#text = text
  }

  /** Id of the detector that fires, once the scan is finished. */
  get id(): string | undefined {
    return this.#found.id
  }

  advance(budget: Budget): boolean {
    const size = this.#text.bytes.length
    for (; this.#pass < this.#passes.length; this.#pass++, this.#at = 0) {
      const pass = this.#passes[this.#pass]!
      while (this.#at < size && pass.best < this.#found.rank) {
        if (budget.left <= 0) return false
        const from = this.#at
        const to = Math.min(size, from + budget.left)
        this.#at = pass.run(this.#text, from, to, this.#found)
        budget.left -= to - from
      }
    }
    return true
  }
}
