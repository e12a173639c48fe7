import { type ActivityLog, createActivityLog } from '../limits/activity.ts'
import { createShadowTally, type ShadowTally } from '../limits/shadow-tally.ts'

/** Counters of exchanges that have ended. */
export interface Habits {
  /** Recent activity of agents, denials by reviewers included. */
  readonly activity: ActivityLog
  /** What rules in shadow would have decided. */
  readonly shadows: ShadowTally
  close(): void
}

/** Agents whose habits are remembered, and hosts of each. */
const maxActivities = 20_000
const maxHostsOfAgent = 256

export function createHabits(): Habits {
  return {
    activity: createActivityLog({ agents: maxActivities, hostsPerAgent: maxHostsOfAgent }),
    shadows: createShadowTally(),
    close() {},
  }
}
