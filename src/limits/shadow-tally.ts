import { RuleTally, type Tallied } from './rule-tally.ts'

/**
 * Counts the decisions that rules and policies in shadow would have changed, for authors to read before enforcing them.
 * In memory, and bounded by the number of rules.
 */
export interface ShadowCount {
  /** Name of the policy whose rule it is. */
  readonly policy: string
  readonly rule: string
  readonly would: string
  readonly count: number
}

export interface ShadowTally {
  note(policy: string, rule: string, would: string): void
  /** Takes a count that was made elsewhere: nobody is told of it again. */
  hear(count: ShadowCount): void
  /** Counts of one policy, the highest first. */
  of(policy: string): readonly ShadowCount[]
  /** What was noted here since this was asked last. */
  untold(): readonly ShadowCount[]
}

export function createShadowTally(maxEntries = 100_000): ShadowTally {
  const tally = new RuleTally<string>(maxEntries)
  // An effect has no space in its name.
  const keyOf = (rule: string, would: string) => `${would} ${rule}`
  const countOf = ({ policy, key, count }: Tallied<string>): ShadowCount => {
    const end = key.indexOf(' ')
    return { policy, rule: key.slice(end + 1), would: key.slice(0, end), count }
  }
  return {
    note: (policy, rule, would) => tally.note(policy, keyOf(rule, would)),
    hear: ({ policy, rule, would, count }) => tally.hear({ policy, key: keyOf(rule, would), count }),
    of: policy => tally.of(policy).map(countOf),
    untold: () => tally.untold().map(countOf),
  }
}
