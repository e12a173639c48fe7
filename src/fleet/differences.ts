/** Differences between gateways that last: while one after the other is updated, they are usual. */
import type { MemberView } from './view.ts'

/** Longest time that a difference is usual, milliseconds. */
const usualMs = 300_000

/** One difference of this gateway from another one. */
export interface Difference {
  readonly name: string
  readonly what: string
}

interface Lasting extends Difference {
  readonly since: number
  reported: boolean
}

export class Differences {
  #found = new Map<string, Lasting>()

  /** Those that have become unusual by now, once each. */
  look(members: readonly MemberView[], steady: number): readonly Difference[] {
    const found = new Map<string, Lasting>()
    for (const { id, name, differs } of members) {
      for (const what of differs) {
        const key = `${id} ${what}`
        found.set(key, this.#found.get(key) ?? { name, what, since: steady, reported: false })
      }
    }
    this.#found = found
    const unusual = [...found.values()].filter(({ since, reported }) => !reported && steady - since > usualMs)
    for (const one of unusual) one.reported = true
    return unusual
  }

  /** Those that are unusual. */
  get count(): number {
    return [...this.#found.values()].filter(({ reported }) => reported).length
  }
}
