import { textOf } from './bytes.ts'
import type { Search } from './detectors.ts'
import type { Budget, Scan } from './scan.ts'

/**
 * Evaluating rules is synchronous, and a long body may keep the detectors busy for longer than other requests should
 * wait. Such an evaluation is made in turns: it breaks off where it has done its share, and is made again in the next
 * turn of the event loop. What it has found before is kept, so that each text is searched once.
 */

/** Bytes that one turn may look at: some milliseconds for the worst text. */
const bytesPerTurn = 131_072

/** Thrown out of an evaluation that has done its share for this turn. */
class TurnOver {
  /** The search that is not finished; undefined when other work waits for a turn of its own. */
  readonly scan: Scan | undefined
  constructor(scan: Scan | undefined) {
    this.scan = scan
  }
}

/** The turns of one evaluation. */
export class SearchTurns {
  readonly budget: Budget = { left: bytesPerTurn }
  readonly #found = new Map<Search, Map<string, string | undefined>>()
  #unfinished: Scan | undefined
  #open: { readonly search: Search; readonly text: string; readonly scan: Scan } | undefined

  /**
   * Goes on with the search that is open, then evaluates from the beginning. Undefined when another turn is needed.
   *
   * @param evaluate gives the same result whenever it is called, and keeps what is costly to work out
   */
  take<T>(evaluate: () => T): T | undefined {
    this.budget.left = bytesPerTurn
    if (this.#unfinished?.advance(this.budget) === false) return undefined
    this.#unfinished = undefined
    current = this
    try {
      return evaluate()
    } catch (error) {
      if (!(error instanceof TurnOver)) throw error
      this.#unfinished = error.scan
      return undefined
    } finally {
      current = undefined
    }
  }

  find(search: Search, text: string): string | undefined {
    let found = this.#found.get(search)
    if (found === undefined) {
      found = new Map()
      this.#found.set(search, found)
    }
    if (found.has(text)) return found.get(text)
    const open = this.#open
    const scan = open?.search === search && open.text === text ? open.scan : search.begin(textOf(text))
    this.#open = { search, text, scan }
    found.set(text, finish(scan))
    this.#open = undefined
    return scan.id
  }
}

/** The evaluation under way, if it is made in turns. Evaluations are synchronous and never nested. */
let current: SearchTurns | undefined

const unlimited: Budget = { left: Number.POSITIVE_INFINITY }

/** Id of the detector that a scan finds; breaks off the evaluation where the scan takes longer than this turn. */
export function finish(scan: Scan): string | undefined {
  if (!scan.advance(current?.budget ?? unlimited)) throw new TurnOver(scan)
  return scan.id
}

/** Searches a text; once in an evaluation that is made in turns. */
export function findIn(search: Search, text: string): string | undefined {
  return current === undefined ? search.find(text) : current.find(search, text)
}

/** Counts work that cannot be divided; it waits for the next turn if part of this one is spent. Its result is kept. */
export function claim(bytes: number): void {
  if (current === undefined) return
  const { budget } = current
  if (budget.left < bytesPerTurn && bytes > budget.left) throw new TurnOver(undefined)
  budget.left -= bytes
}
