/** Recorded shapes of requests in the storage contract. */
import type { AuditEntry } from './audit.ts'

/** Requests of one agent with the same shape and the same outcome. Times are milliseconds since the epoch. */
export interface ShapeCount {
  readonly agentId: string
  /** Of shape and outcome. */
  readonly digest: string
  /** JSON, opaque to the store. */
  readonly shape: string
  /** JSON, opaque to the store. */
  readonly outcome: string
  /** For each place of the path with a class, values that stood there. */
  readonly values: readonly (readonly string[])[]
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
  /** Days since the epoch, in UTC, in ascending order. */
  readonly days: readonly number[]
}

export interface RecordedShapes {
  /** The most frequent first. */
  readonly shapes: readonly ShapeCount[]
  /** Since when some requests were not recorded; null: nothing is missing. */
  readonly incompleteSince: number | null
}

export interface ShapeLimits {
  readonly maxOfAgent: number
  readonly max: number
  readonly maxDays: number
}

export interface ShapeTable {
  /**
   * Adds to what was recorded before. Counts of agents that are gone are dropped. A new shape is on probation until it came
   * three times, in two different hours; a quarter of an agent's shapes may be, and of more the oldest are dropped.
   *
   * @param skipped agents of which the caller has not recorded everything
   * @param now noted for agents of which something is missing
   * @returns agents of which something was dropped
   */
  add(
    counts: readonly ShapeCount[],
    skipped: readonly string[],
    limits: ShapeLimits,
    now: number,
  ): Promise<readonly string[]>
  of(agentId: string): Promise<RecordedShapes>
  /** Removes all of an agent. */
  clear(agentId: string, entry: AuditEntry): Promise<void>
  /** Removes what did not come since `before`, up to `limit` shapes and as many gaps. */
  prune(before: number, limit: number): Promise<void>
}
