import { RE2JS } from 're2js'

/** A compiled pattern. */
export interface Regex {
  /** Whether the pattern is found anywhere in the text; undefined when finding out would take too long. */
  readonly search: (text: string) => boolean | undefined
}

/** Compiles RE2 syntax (no look-around, no back references: linear time). A string is why it is refused. */
export function compileRegex(source: string, ignoreCase: boolean): Regex | string {
  try {
    const compiled = RE2JS.compile(source, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
    return new BoundedRegex(compiled)
  } catch (error) {
    return `not an RE2 pattern: ${error instanceof Error ? error.message : 'too complex'}`.slice(0, 200)
  }
}

/** Memory for the states of one search, bytes; also bounds the time it takes to make them, to some tens of ms. */
const stateBytes = 1_048_576
/** Most steps of a search without states, program size times text length: some tens of ms. */
const maxSteps = 262_144

const tooMuch = Symbol('too much')

/**
 * Linear is not enough: patterns like `[ab]*a[ab]{800}c` cost the program size for each character, seconds for 64 KB.
 * The fast engine of RE2 builds its states while it searches. Here their number in one search is limited, and
 * when it gives up, the slow engine is used on short texts only.
 */
class BoundedRegex implements Regex {
  readonly #compiled: RE2JS
  readonly #states: ReturnType<RE2JS['re2']>['dfa']
  readonly #longestSlow: number

  constructor(compiled: RE2JS) {
    this.#compiled = compiled
    this.#longestSlow = Math.floor(maxSteps / compiled.programSize())
    this.#states = compiled.re2().dfa
    // What remains after the states of a search were used up: nothing, so that it ends.
    this.#states.stateBudget = 0
    const { match } = this.#states
    this.#states.match = (input: { endPos(): number }, pos: unknown, anchor: unknown) => {
      const found = match.call(this.#states, input, pos, anchor)
      if (found === null && input.endPos() > this.#longestSlow) throw tooMuch
      return found
    }
  }

  search(text: string): boolean | undefined {
    const states = this.#states
    if (states.memBudget < stateBytes / 2 || states.memBudget > stateBytes) {
      states.clearCache()
      states.memBudget = stateBytes
    }
    try {
      return this.#compiled.test(text)
    } catch (error) {
      if (error === tooMuch) return undefined
      throw error
    }
  }
}
