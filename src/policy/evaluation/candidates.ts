import type { Facts } from '../request/facts.ts'
import type { CompiledPolicy } from './compile.ts'
import type { CompiledRule } from './rule.ts'

const past = Number.MAX_SAFE_INTEGER

/** The rules of a policy that can match a request, in order: merges the lists of the index that the request falls into. */
class Candidates {
  readonly #lists: (readonly number[])[] = []
  /** Next position in each list. */
  readonly #positions: number[] = []
  #count = 0

  begin(policy: CompiledPolicy, facts: Facts): this {
    this.#count = policy.index.collect(facts, this.#lists)
    for (let index = 0; index < this.#count; index++) this.#positions[index] = 0
    return this
  }

  /** Place of the next rule among the rules of the policy, or a number past them. A rule in several lists comes once. */
  next(): number {
    const lists = this.#lists
    const positions = this.#positions
    let least = past
    for (let index = 0; index < this.#count; index++) {
      const place = lists[index]![positions[index]!]
      if (place !== undefined && place < least) least = place
    }
    for (let index = 0; index < this.#count; index++) {
      const at = positions[index]!
      if (lists[index]![at] === least) positions[index] = at + 1
    }
    return least
  }
}

// Deciding is synchronous and asks one policy at a time, so one serves all requests.
const candidates = new Candidates()

export function candidatesOf(policy: CompiledPolicy, facts: Facts): Candidates {
  return candidates.begin(policy, facts)
}

/** The rules that can match and whose rank is at most `end`. */
export function rulesBefore(policy: CompiledPolicy, facts: Facts, end: number): readonly CompiledRule[] {
  const found: CompiledRule[] = []
  candidatesOf(policy, facts)
  for (;;) {
    const rule = policy.rules[candidates.next()]
    if (rule === undefined || rule.rank > end) return found
    found.push(rule)
  }
}
