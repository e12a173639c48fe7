import type { Facts } from '../request/facts.ts'
import type { CompiledPolicy } from './compile.ts'
import type { CompiledRule } from './rule.ts'
import type { Source } from './rule-index.ts'

/** Places of the rules that can match, ascending, then places past the last rule. */
export interface Candidates {
  next(facts: Facts): number
}

/** Every rule, one after the other. */
class AllRules implements Candidates {
  #place = 0

  begin(): this {
    this.#place = 0
    return this
  }

  next(): number {
    return this.#place++
  }
}

const past = Number.MAX_SAFE_INTEGER

/** Merges the lists of an index. */
class MergedRules implements Candidates {
  readonly #sources: Source[] = []
  /** Next position in each list, and the place it holds. */
  readonly #positions: number[] = []
  readonly #heads: number[] = []
  #count = 0

  begin(policy: CompiledPolicy, facts: Facts): this {
    this.#count = policy.index!.collect(facts, this.#sources)
    for (let index = 0; index < this.#count; index++) {
      this.#sources[index]!.program?.begin(facts)
      this.#move(index, 0, facts)
    }
    return this
  }

  #move(index: number, from: number, facts: Facts): void {
    const { places, program } = this.#sources[index]!
    const position = program === undefined ? from : program.next(from, facts)
    this.#positions[index] = position
    this.#heads[index] = position < places.length ? places[position]! : past
  }

  /** A rule that is in several lists comes once. */
  next(facts: Facts): number {
    const heads = this.#heads
    let least = past
    for (let index = 0; index < this.#count; index++) if (heads[index]! < least) least = heads[index]!
    if (least === past) return past
    for (let index = 0; index < this.#count; index++) {
      if (heads[index] === least) this.#move(index, this.#positions[index]! + 1, facts)
    }
    return least
  }
}

// Deciding is synchronous and asks one policy at a time, so each of these serves all requests.
const allRules = new AllRules()
const mergedRules = new MergedRules()

export function candidatesOf(policy: CompiledPolicy, facts: Facts): Candidates {
  return policy.index === undefined ? allRules.begin() : mergedRules.begin(policy, facts)
}

/** The rules that can match and come before `end`. */
export function rulesBefore(policy: CompiledPolicy, facts: Facts, end: number): readonly CompiledRule[] {
  const candidates = candidatesOf(policy, facts)
  const found: CompiledRule[] = []
  for (;;) {
    const rule = policy.rules[candidates.next(facts)]
    if (rule === undefined || rule.rank > end) return found
    found.push(rule)
  }
}
