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
  /** Counts of one policy, the highest first. */
  of(policy: string): readonly ShadowCount[]
}

/** @param maxEntries rules counted; those that come later are not, so that names that change cannot fill memory */
export function createShadowTally(maxEntries = 100_000): ShadowTally {
  const policies = new Map<string, Map<string, { rule: string; would: string; count: number }>>()
  let entries = 0
  return {
    note(policy, rule, would) {
      const rules = policies.get(policy) ?? new Map()
      policies.set(policy, rules)
      const key = `${would} ${rule}`
      const entry = rules.get(key)
      if (entry !== undefined) entry.count += 1
      else if (entries < maxEntries) {
        entries += 1
        rules.set(key, { rule, would, count: 1 })
      }
    },
    of(policy) {
      const found = [...(policies.get(policy)?.values() ?? [])].map(entry => ({ policy, ...entry }))
      return found.sort((left, right) => right.count - left.count)
    },
  }
}
