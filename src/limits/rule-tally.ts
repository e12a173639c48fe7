/** Counts what happened by a rule, since the start. In memory and bounded. */
export interface Tallied<Key> {
  /** Name of the policy whose rule it is. */
  readonly policy: string
  readonly key: Key
  readonly count: number
}

interface Entry<Key> {
  readonly policy: string
  readonly key: Key
  count: number
  untold: number
}

export class RuleTally<Key> {
  readonly #maxEntries: number
  readonly #policies = new Map<string, Map<Key, Entry<Key>>>()
  #entries = 0
  /** Those of which something is untold. */
  #waiting: Entry<Key>[] = []

  /** @param maxEntries keys counted; those that come later are not, so that names that change cannot fill memory */
  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries
  }

  note(policy: string, key: Key): void {
    const entry = this.#of(policy, key)
    if (entry === undefined) return
    if (entry.untold === 0) this.#waiting.push(entry)
    entry.untold += 1
    entry.count += 1
  }

  /** Takes a count that was made elsewhere: nobody is told of it again. */
  hear({ policy, key, count }: Tallied<Key>): void {
    const entry = this.#of(policy, key)
    if (entry !== undefined) entry.count += count
  }

  /** Counts of one policy, the highest first. */
  of(policy: string): readonly Tallied<Key>[] {
    return [...(this.#policies.get(policy)?.values() ?? [])].sort((left, right) => right.count - left.count)
  }

  /** What was noted here since this was asked last. */
  untold(): readonly Tallied<Key>[] {
    const told = this.#waiting.map(({ policy, key, untold }) => ({ policy, key, count: untold }))
    for (const entry of this.#waiting) entry.untold = 0
    this.#waiting = []
    return told
  }

  /** Requests are counted here: what is known costs two look-ups and no object. */
  #of(policy: string, key: Key): Entry<Key> | undefined {
    const known = this.#policies.get(policy)?.get(key)
    if (known !== undefined || this.#entries >= this.#maxEntries) return known
    this.#entries += 1
    const entry = { policy, key, count: 0, untold: 0 }
    const ofPolicy = this.#policies.get(policy) ?? new Map<Key, Entry<Key>>()
    this.#policies.set(policy, ofPolicy.set(key, entry))
    return entry
  }
}
