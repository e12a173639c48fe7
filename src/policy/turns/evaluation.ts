import { textOf } from '../detectors/bytes.ts'
import type { DetectorSearch } from '../detectors/detectors.ts'
import { Readings } from '../detectors/readings.ts'
import { LongNumber } from '../values/numbers.ts'
import type { Truth } from '../values/truth.ts'
import { type Budget, stepsOfText, type Work } from '../values/work.ts'

/**
 * Evaluating rules is synchronous, and a long body may keep it busy for longer than other requests should wait. Such an
 * evaluation is made in turns: it breaks off when it has taken its steps, and starts again from the beginning in the next
 * turn of the event loop. Results are kept, so that only what is missing is worked out again:
 *
 * - values of fields of the body, truths of conditions on it, and decided rules (`once`);
 * - how far a condition has come with the elements of a list (`progressOf`);
 * - one piece of long work that is not finished (`resume`), and its results for each text.
 */

/** Steps that one turn may take: 1 to 2 ms. A turn takes more by one indivisible piece of work at most. */
export const stepsPerTurn = 65_536

/** Thrown out of an evaluation that has taken its steps. */
class TurnOver {
  /** The work that is not finished; undefined when it starts in the next turn. */
  readonly work: Work | undefined
  constructor(work: Work | undefined) {
    this.work = work
  }
}

/** How far a condition has come with the elements of a list. */
export interface EvaluationProgress<T> {
  readonly state: T
  /** The next element. */
  at: number
  /** The truth of those before. */
  result: Truth
}

interface OpenWork {
  readonly key: object
  readonly text: string
  readonly work: Work
}

export class EvaluationTurns {
  readonly budget: Budget = { left: stepsPerTurn }
  #kept: Map<object, unknown> | undefined
  #progress: Map<object, EvaluationProgress<unknown>> | undefined
  #texts: Map<object, Map<string, unknown>> | undefined
  #open: OpenWork | undefined
  #unfinished: Work | undefined

  // Most evaluations keep nothing, and empty maps take more memory than all else here.

  get kept(): Map<object, unknown> {
    this.#kept ??= new Map()
    return this.#kept
  }

  get progress(): Map<object, EvaluationProgress<unknown>> {
    this.#progress ??= new Map()
    return this.#progress
  }

  /** Steps taken in the last turn. */
  get steps(): number {
    return stepsPerTurn - this.budget.left
  }

  /**
   * Goes on with unfinished work, then evaluates from the beginning. Undefined when another turn is needed.
   *
   * @param evaluate gives the same result whenever it is called
   */
  take<T>(evaluate: () => T): T | undefined {
    this.budget.left = stepsPerTurn
    if (this.#unfinished?.advance(this.budget) === false) return undefined
    this.#unfinished = undefined
    current = this
    isCharging = false
    try {
      return evaluate()
    } catch (error) {
      if (!(error instanceof TurnOver)) throw error
      this.#unfinished = error.work
      return undefined
    } finally {
      current = undefined
    }
  }

  /** Finishes the work on a text, which may have begun in an earlier turn. */
  goOn<W extends Work>(key: object, text: string, begin: () => W): W {
    const open = this.#open
    // The same key always comes with the same kind of work.
    const work = open?.key === key && open.text === text ? (open.work as W) : begin()
    this.#open = { key, text, work }
    finish(work)
    this.#open = undefined
    return work
  }

  /** Results by text, for one key. */
  resultsOf<T>(key: object): Map<string, T> {
    this.#texts ??= new Map()
    let results = this.#texts.get(key)
    if (results === undefined) {
      results = new Map()
      this.#texts.set(key, results)
    }
    // One key has results of one type.
    return results as Map<string, T>
  }
}

/** The evaluation under way, if it is made in turns. Evaluations are synchronous and never nested. */
let current: EvaluationTurns | undefined
/** Whether a condition on the body is asked: only its result is kept, so only its steps may end the turn. */
let isCharging = false

const unlimited: Budget = { left: Number.POSITIVE_INFINITY }

/** Does all of the work; breaks the evaluation off where it takes longer than this turn. */
export function finish(work: Work): void {
  if (!work.advance(current?.budget ?? unlimited)) throw new TurnOver(work)
}

/** Does all of the work on a text for a condition; on the body in turns, where unfinished work is found again. */
export function resume<W extends Work>(key: object, text: string, begin: () => W): W {
  if (current !== undefined && isCharging) return current.goOn(key, text, begin)
  const work = begin()
  work.advance(unlimited)
  return work
}

/** The result for a text; worked out once in an evaluation that is made in turns. */
export function onceForText<T>(key: object, text: string, work: (text: string) => T): T {
  if (current === undefined) return work(text)
  const results = current.resultsOf<T>(key)
  // T may include undefined, so `has` is asked.
  if (results.has(text)) return results.get(text) as T
  const result = work(text)
  results.set(text, result)
  return result
}

/** Searches a text; once in an evaluation that is made in turns. */
export function findIn(search: DetectorSearch, text: string): string | undefined {
  const turns = current
  if (turns === undefined) return search.find(text)
  return onceForText(search, text, () => turns.goOn(search, text, () => search.begin(new Readings(textOf(text)))).id)
}

/** The result of `work`; worked out once for each key in an evaluation that is made in turns. */
export function once<T>(key: object, work: () => T): T {
  if (current === undefined) return work()
  const { kept } = current
  // One key has results of one type.
  if (kept.has(key)) return kept.get(key) as T
  const result = work()
  kept.set(key, result)
  return result
}

/** Asks a condition on the body, whose steps are counted. */
export function askCounted<F>(test: (facts: F) => Truth, facts: F): Truth {
  if (current === undefined) return test(facts)
  // A test is the key of nothing but its truth.
  const known = current.kept.get(test) as Truth | undefined
  if (known !== undefined) return known
  isCharging = true
  const result = test(facts)
  isCharging = false
  current.kept.set(test, result)
  return result
}

/** Counts steps that a condition on the body is about to take. Ends the turn when none are left. */
export function charge(steps: number): void {
  if (current === undefined || !isCharging) return
  share(steps)
}

/** The same for work whose result is kept. */
export function share(steps: number): void {
  if (current === undefined) return
  if (current.budget.left <= 0) throw new TurnOver(undefined)
  current.budget.left -= steps
}

/** Counts steps that were taken, where their number was not known before. */
export function spend(steps: number): void {
  if (current !== undefined) current.budget.left -= steps
}

/** The same for the test of one element. */
export function chargeElement(element: unknown): void {
  if (current === undefined || !isCharging) return
  if (typeof element === 'string') share(stepsPerElement + stepsOfText(element.length))
  else if (element instanceof LongNumber) share(stepsPerLongNumber + element.text.length)
  else share(stepsPerElement)
}

const stepsPerElement = 4
const stepsPerLongNumber = 64

/**
 * Where a condition on the body goes on with the elements of a list.
 *
 * @param begin gives what it keeps beside the truth
 */
export function progressOf<T>(test: object, first: Truth, begin: () => T): EvaluationProgress<T> {
  const known = isCharging ? current?.progress.get(test) : undefined
  // One test always begins with the same type.
  if (known !== undefined) return known as EvaluationProgress<T>
  const progress = { at: 0, result: first, state: begin() }
  if (isCharging) current?.progress.set(test, progress)
  return progress
}
