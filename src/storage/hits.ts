/** How often rules decided, in the storage contract. */

export interface RuleHits {
  readonly policy: string
  /** Empty: the default of the policy. */
  readonly rule: string
  /** Of the rule: another one when the rule was changed. */
  readonly version: string
  /** Days since the epoch, in UTC. */
  readonly day: number
  readonly count: number
}

export interface HitTable {
  /** Adds to what is stored of the same rule, version and day. */
  add(hits: readonly RuleHits[]): Promise<void>
  of(policy: string): Promise<readonly RuleHits[]>
  /** Removes days before this one, so many rows at most. */
  prune(before: number, limit: number): Promise<void>
}
