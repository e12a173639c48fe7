/** Events in the storage contract: changes of held requests and agents, written by the commits that made them. */
import type { hitlEvents } from '../base/hitl-events.ts'

/** The event of an operation. Agents are named by their ids. */
export interface EventNote {
  readonly type: (typeof hitlEvents)[number]
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Null: it is about an agent, not about a request. */
  readonly hitlId: string | null
  /** JSON-safe. */
  readonly data: Readonly<Record<string, unknown>> & { readonly agentId: string }
}

export interface StoredEvent extends EventNote {
  /** Its number among all changes: grows in the order of the commits. */
  readonly seq: number
}

/** The latest events. */
export interface EventHistory {
  /** Numbers of another epoch are of other changes. No colon or line break. */
  readonly epoch: string
  /** Every event with a later number is there. */
  readonly after: number
  /** In the order of the commits. */
  readonly events: readonly StoredEvent[]
}

/** How many of the latest events stay readable at least. */
export const keptEvents = 1_000
