import { createActivityLog } from './activity.ts'
import type { ActivityDelta } from './activity-delta.ts'
import { createIncidents } from './incidents.ts'
import { RuleTally } from './rule-tally.ts'

/** Counters of exchanges that have ended. */
export type RecentActivity = ReturnType<typeof createRecentActivity>

/** @param onDelta called with activity that others must know (limits/activity.ts) */
export function createRecentActivity(onDelta?: (delta: ActivityDelta) => void) {
  return {
    /** Recent activity of agents, denials by reviewers included. */
    activity: createActivityLog(undefined, onDelta),
    hits: new RuleTally(),
    /** Decisions that rules in shadow would have changed. */
    shadows: new RuleTally(),
    /** Requests that were not simply allowed. */
    incidents: createIncidents(),
    close() {},
  }
}
