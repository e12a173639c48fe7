/** Counts the requests that each rule decided, since the start, for the authors of policies. In memory and bounded. */
export interface HitCount {
  readonly policy: string
  /** Null: the default of the policy. */
  readonly rule: string | null
  readonly count: number
}

export interface HitTally {
  note(policy: string, rule: string | null, count?: number): void
  /** Counts of one policy, the highest first. */
  of(policy: string): readonly HitCount[]
  /** All counts, which begin at 0 again. */
  take(): readonly HitCount[]
}

/** @param maxEntries rules counted; those that come later are not, so that names that change cannot fill memory */
export function createHitTally(maxEntries = 100_000): HitTally {
  const policies = new Map<string, Map<string | null, { count: number }>>()
  let entries = 0
  const listed = (policy: string): HitCount[] =>
    [...(policies.get(policy) ?? [])].map(([rule, { count }]) => ({ policy, rule, count }))
  return {
    // Every request is counted here: a known rule costs two look-ups and no object.
    note(policy, rule, count = 1) {
      const hit = policies.get(policy)?.get(rule)
      if (hit !== undefined) {
        hit.count += count
        return
      }
      if (entries >= maxEntries) return
      entries += 1
      const rules = policies.get(policy) ?? new Map()
      policies.set(policy, rules.set(rule, { count }))
    },
    of: policy => listed(policy).sort((left, right) => right.count - left.count),
    take() {
      const taken = [...policies.keys()].flatMap(listed)
      policies.clear()
      entries = 0
      return taken
    },
  }
}
