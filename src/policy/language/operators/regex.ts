import { RE2JS } from 're2js'
import { type Budget, stepsOfText, type Work } from '../../values/work.ts'

/** Compiles RE2 syntax (no look-around, no back references: linear time). A string is why it is refused. */
export function compileRegex(source: string, ignoreCase: boolean): Regex | string {
  try {
    return new Regex(RE2JS.compile(source, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0).re2().dfa)
  } catch (error) {
    return `not an RE2 pattern: ${error instanceof Error ? error.message : 'too complex'}`.slice(0, 200)
  }
}

/** The automaton of RE2JS, which makes its states when they are first needed. */
type Automaton = ReturnType<ReturnType<typeof RE2JS.compile>['re2']>['dfa']

/** A state of the automaton, with the states that follow it by class of character, as far as they were needed. */
interface State {
  readonly next: readonly (State | null)[] | null
  readonly nfaStates: readonly number[]
  readonly isMatch: boolean
}

export class Regex {
  readonly #automaton: Automaton

  constructor(automaton: Automaton) {
    this.#automaton = automaton
    automaton.stateBudget = stateBytes
    automaton.clearCache()
  }

  /** A search for the pattern anywhere in the text. */
  begin(text: string): RegexSearch {
    return new RegexSearch(this.#automaton, text)
  }
}

/** Memory for the states of one pattern; they are made again where it is used up. */
const stateBytes = 1_048_576
/** Maximum of steps of a search that make states: 20 ms. */
export const maxStepsOfStates = 1_048_576
/** Steps to make a state, for each place of the program that it and the one before stand for. */
const stepsPerPosition = 8
/** Characters between two looks at the budget. */
const charactersPerPiece = 8_192

const unanchored = 0
const endOfText = -1
/** The beginning of a text, as the automaton asks for it. */
const beginning = { context: () => -1 }

/**
 * Linear is not enough: patterns like `[ab]*a[ab]{800}c` cost the program size for each character, seconds for 64 KB.
 * The steps that make states are counted, and a search that takes too many of them is given up.
 */
export class RegexSearch implements Work {
  /** Undefined when finding out would take too long. */
  found: boolean | undefined
  readonly #automaton: Automaton
  readonly #text: string
  #state: State | undefined
  #at = 0
  #stepsOfStates = 0

  constructor(automaton: Automaton, text: string) {
    this.#automaton = automaton
    this.#text = text
  }

  advance(budget: Budget): boolean {
    while (budget.left > 0) {
      if (this.#run(budget)) return true
    }
    return false
  }

  /** Goes on to a state that must be made, or for some characters. True when the search is over. */
  #run(budget: Budget): boolean {
    const { latin1Class } = this.#automaton
    const text = this.#text
    const from = this.#at
    const end = Math.min(text.length, from + charactersPerPiece)
    let state: State = this.#state ?? this.#automaton.start(beginning, 0)
    let at = from
    while (at < end) {
      const code = text.codePointAt(at) ?? 0
      const next = state.next?.[code < 256 ? latin1Class[code]! : this.#automaton.runeClass(code)] ?? null
      if (next === null) break
      at += code > 0xffff ? 2 : 1
      state = next
      if (state.isMatch) return this.#end(true)
    }
    budget.left -= 2 * stepsOfText(at - from)
    this.#at = at
    this.#state = state
    return at < end || at === text.length ? this.#make(state, budget) : false
  }

  /** Makes the state that follows, or ends the text. True when the search is over. */
  #make(state: State, budget: Budget): boolean {
    const automaton = this.#automaton
    const code = this.#text.codePointAt(this.#at)
    const next =
      code === undefined
        ? this.#step(state, automaton.numClasses, endOfText)
        : this.#step(state, automaton.runeClass(code), code)
    if (next === null) return true
    const steps = stepsPerPosition * (state.nfaStates.length + next.nfaStates.length + 4)
    budget.left -= steps
    this.#stepsOfStates += steps
    if (code === undefined || next.isMatch) return this.#end(next.isMatch)
    this.#at += code > 0xffff ? 2 : 1
    this.#state = next
    return this.#stepsOfStates > maxStepsOfStates
  }

  #step(state: State, kind: number, code: number): State | null {
    const automaton = this.#automaton
    const next: State | null = automaton.step(state, kind, code, unanchored)
    if (next !== null) return next
    automaton.clearCache()
    return automaton.step(state, kind, code, unanchored)
  }

  #end(found: boolean): boolean {
    this.found = found
    return true
  }
}
