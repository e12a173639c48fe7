import type { Budget, Work } from '../values/work.ts'
import { runLength, type Text } from './bytes.ts'
import type { Readings } from './readings.ts'

/** The finding that counts: of all detectors that fire, the one that is first in the order of the table. */
export class DetectorFindings {
  rank = Number.POSITIVE_INFINITY
  id: string | undefined = undefined
  /** Steps taken so far at places that needed a closer look. Passing over the text is counted elsewhere. */
  looks = 0

  #set: Uint8Array | undefined
  #from = 0
  #end = 0

  /**
   * Characters of the set from `from` on, at least up to `enough`. The last run is remembered, so that a text with many
   * beginnings of tokens in one run is not looked at again for each of them.
   */
  runFrom(text: Text, from: number, set: Uint8Array, enough: number): number {
    if (set !== this.#set || from < this.#from || from > this.#end) {
      this.#set = set
      this.#from = from
      this.#end = from + runLength(text, from, set, enough)
      this.looks += (this.#end - from) >> 3
      if (this.#end - from >= enough) this.#set = undefined
    }
    return this.#end - from
  }

  /** @param _at the place at which the detector fired; `extentOf` says what it found there */
  note({ rank, id }: RankedDetector, _at: number): void {
    if (rank >= this.rank) return
    this.rank = rank
    this.id = id
  }
}

/** A detector with its place in the order. Of findings with one rank, the first in the text counts. */
export interface RankedDetector {
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
  run(text: Text, from: number, to: number, found: DetectorFindings): number
}

/** Maximum of bytes of one piece: a millisecond for the worst text. */
const pieceBytes = 16_384
/** Bytes that a pass goes over in one step. What takes longer is in `looks`. */
const bytesPerStep = 32

/** One search over the readings of a text, one after the other, until a detector fires in one of them. */
export class Scan implements Work {
  readonly #passes: readonly Pass[]
  readonly #readings: Readings
  #found = new DetectorFindings()
  #reading = 0
  #pass = 0
  #at = 0

  constructor(passes: readonly Pass[], readings: Readings) {
    this.#passes = passes
    this.#readings = readings
  }

  /** Id of the detector that fires, once the scan is finished. */
  get id(): string | undefined {
    return this.#found.id
  }

  advance(budget: Budget): boolean {
    while (this.id === undefined || this.#pass < this.#passes.length) {
      if (!this.#readings.make(this.#reading, budget)) return false
      const text = this.#readings.at(this.#reading)
      if (text === undefined) return true
      if (!this.#search(text, budget)) return false
      if (this.id !== undefined) return true
      this.#reading++
      this.#pass = 0
      this.#found = new DetectorFindings()
    }
    return true
  }

  #search(text: Text, budget: Budget): boolean {
    const size = text.bytes.length
    for (; this.#pass < this.#passes.length; this.#pass++, this.#at = 0) {
      const pass = this.#passes[this.#pass]!
      while (this.#at < size && pass.best < this.#found.rank) {
        if (budget.left <= 0) return false
        const looks = this.#found.looks
        const to = Math.min(size, this.#at + pieceBytes, this.#at + bytesPerStep * budget.left)
        const steps = Math.ceil((to - this.#at) / bytesPerStep)
        this.#at = pass.run(text, this.#at, to, this.#found)
        budget.left -= steps + this.#found.looks - looks
      }
    }
    return true
  }
}
