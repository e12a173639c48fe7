import { type ActivityLog, createActivityLog } from '../limits/activity.ts'
import { createHitTally, type HitTally } from '../limits/hit-tally.ts'
import { createIncidents, type Incidents } from '../limits/incidents.ts'
import { createShadowTally, type ShadowTally } from '../limits/shadow-tally.ts'
import type { Untold } from '../limits/untold.ts'

/** Counters of exchanges that have ended. */
export interface RecentActivity {
  /** Recent activity of agents, denials by reviewers included. */
  readonly activity: ActivityLog
  /** Number of decisions by rule. */
  readonly hits: HitTally
  /** Decisions that rules in shadow would have changed. */
  readonly shadows: ShadowTally
  /** Requests that were not simply allowed. */
  readonly incidents: Incidents
  close(): void
}

/** @param onUntold takes what an agent did that others shall know (limits/activity.ts) */
export function createRecentActivity(onUntold?: (untold: Untold) => void): RecentActivity {
  return {
    activity: createActivityLog(undefined, onUntold),
    hits: createHitTally(),
    shadows: createShadowTally(),
    incidents: createIncidents(),
    close() {},
  }
}
