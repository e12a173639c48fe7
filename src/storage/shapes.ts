/** Recorded shapes of requests in the storage contract. */
import type { BodyValues } from '../policy/propose/field-values.ts'
import type { AuditEntry } from './audit.ts'
import type { HitTable } from './hits.ts'

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
  /** What fields of the body had as values, as far as it is kept. */
  readonly fields: BodyValues
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

/** A whole request of a shape. */
export interface StoredSample {
  /** Random. */
  readonly id: string
  readonly agentId: string
  /** That of its shape. */
  readonly digest: string
  readonly at: number
  /** Opaque to the store. */
  readonly sealed: Uint8Array
}

export interface SampleLimits {
  readonly maxOfAgent: number
  readonly maxOfShape: number
  /** Bytes of all agents. */
  readonly maxBytes: number
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
  /**
   * Keeps samples that the limits allow; those of agents that are gone are dropped. A further sample of a shape that has
   * enough is dropped too.
   *
   * @returns agents of which one was dropped because the agent, or all of them, have too many
   */
  keepSamples(samples: readonly StoredSample[], limits: SampleLimits): Promise<readonly string[]>
  /** Oldest first. */
  samples(agentId: string): Promise<readonly StoredSample[]>
  clear(agentId: string, entry: AuditEntry): Promise<void>
  /** Removes what did not come since `before`, up to `limit` shapes and as many gaps, and samples from before `samplesBefore`. */
  prune(before: number, samplesBefore: number, limit: number): Promise<void>
}

/** What is recorded of requests. */
export interface RecordingTables {
  readonly shapes: ShapeTable
  readonly hits: HitTable
}
