import type { Effect } from '../language/model.ts'

/** What came of requests. Counts are kept for each shape and outcome. */
export interface ShapeOutcome {
  /** What the policies said. */
  readonly effect: Effect
  readonly policy: string | null
  /** The rule that decided; null: none did. */
  readonly rule: string | null
  /** First digit of the status that the agent got, or the upstream gave; 0: there was none. */
  readonly status: number
  readonly verdict: 'approved' | 'denied' | null
  /** A signal of the risk for which the request teaches nothing. */
  readonly signal: string | null
}
