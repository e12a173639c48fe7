import { type ActivityLog, createActivityLog } from './activity.ts'
import type { ActivityDelta } from './activity-delta.ts'
import { createIncidents, type Incidents } from './incidents.ts'
import { RuleTally } from './rule-tally.ts'

/** Counters of exchanges that have ended. */
export interface RecentActivity {
  /** Recent activity of agents, denials by reviewers included. */
  readonly activity: ActivityLog
  /** Number of decisions by rule. */
  readonly hits: RuleTally
  /** Decisions that rules in shadow would have changed. */
  readonly shadows: RuleTally
  /** Requests that were not simply allowed. */
  readonly incidents: Incidents
  close(): void
}

/** @param onDelta called with activity that others must know (limits/activity.ts) */
export function createRecentActivity(onDelta?: (delta: ActivityDelta) => void): RecentActivity {
  return {
    activity: createActivityLog(undefined, onDelta),
    hits: new RuleTally(),
    shadows: new RuleTally(),
    incidents: createIncidents(),
    close() {},
  }
}
