import { RuleTally, type Tallied } from './rule-tally.ts'

/** Requests that a rule decided, for the authors of policies. */
export interface HitCount {
  readonly policy: string
  /** Null: the default of the policy. */
  readonly rule: string | null
  readonly count: number
}

export interface HitTally {
  note(policy: string, rule: string | null): void
  /** Takes a count that was made elsewhere: nobody is told of it again. */
  hear(count: HitCount): void
  /** Counts of one policy, the highest first. */
  of(policy: string): readonly HitCount[]
  /** What was noted here since this was asked last. */
  untold(): readonly HitCount[]
}

export function createHitTally(maxEntries = 100_000): HitTally {
  const tally = new RuleTally<string | null>(maxEntries)
  const hitOf = ({ policy, key, count }: Tallied<string | null>): HitCount => ({ policy, rule: key, count })
  return {
    note: (policy, rule) => tally.note(policy, rule),
    hear: ({ policy, rule, count }) => tally.hear({ policy, key: rule, count }),
    of: policy => tally.of(policy).map(hitOf),
    untold: () => tally.untold().map(hitOf),
  }
}
