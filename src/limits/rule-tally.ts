export interface RuleCount {
  /** Name of the policy whose rule it is. */
  readonly policy: string
  /** Null: the default of the policy. */
  readonly rule: string | null
  /** The effect that the rule would have had, in shadow. Null when it decided. */
  readonly would: string | null
  readonly count: number
}

interface RuleEntry extends RuleCount {
  count: number
  unsent: number
  unstored: number
}

/**
 * Counts by rule since the start, in memory: of requests that were decided, for the authors of policies, and of decisions
 * that rules in shadow would have changed, to be read before they are enforced. Each has a tally of its own.
 */
export class RuleTally {
  readonly #maxEntries: number
  readonly #policies = new Map<string, Map<string | null, RuleEntry>>()
  #entries = 0
  /** Entries with counts that were not sent yet. */
  #waiting: RuleEntry[] = []
  /** Entries with counts of this thread that were not stored yet. */
  #toStore: RuleEntry[] = []

  /** @param maxEntries maximum of entries; further names are not counted, so that changing names cannot fill memory */
  constructor(maxEntries = 100_000) {
    this.#maxEntries = maxEntries
  }

  note(policy: string, rule: string | null, would: string | null = null): void {
    const entry = this.#of(policy, rule, would)
    if (entry === undefined) return
    if (entry.unsent === 0) this.#waiting.push(entry)
    if (entry.unstored === 0) this.#toStore.push(entry)
    entry.unsent += 1
    entry.unstored += 1
    entry.count += 1
  }

  /** Adds a count of another thread or gateway; it is not sent on. */
  add({ policy, rule, would, count }: RuleCount): void {
    const entry = this.#of(policy, rule, would)
    if (entry !== undefined) entry.count += count
  }

  /** Counts of one policy, the highest first. */
  of(policy: string): readonly RuleCount[] {
    const counts = [...(this.#policies.get(policy)?.values() ?? [])].map(entry => countOf(entry, entry.count))
    return counts.sort((left, right) => right.count - left.count)
  }

  /** Counts since the last call. */
  unsent(): readonly RuleCount[] {
    const sent = this.#waiting.map(entry => countOf(entry, entry.unsent))
    for (const entry of this.#waiting) entry.unsent = 0
    this.#waiting = []
    return sent
  }

  /** Counts of this thread since the last call, to be stored: others store theirs. */
  unstored(): readonly RuleCount[] {
    const counts = this.#toStore.map(entry => countOf(entry, entry.unstored))
    for (const entry of this.#toStore) entry.unstored = 0
    this.#toStore = []
    return counts
  }

  /** On the path of requests: a known entry costs two look-ups and no object. */
  #of(policy: string, rule: string | null, would: string | null): RuleEntry | undefined {
    // An effect has no space in its name.
    const key = would === null ? rule : `${would} ${rule}`
    const known = this.#policies.get(policy)?.get(key)
    if (known !== undefined || this.#entries >= this.#maxEntries) return known
    this.#entries += 1
    const entry = { policy, rule, would, count: 0, unsent: 0, unstored: 0 }
    const ofPolicy = this.#policies.get(policy) ?? new Map<string | null, RuleEntry>()
    this.#policies.set(policy, ofPolicy.set(key, entry))
    return entry
  }
}

const countOf = ({ policy, rule, would }: RuleEntry, count: number): RuleCount => ({ policy, rule, would, count })
