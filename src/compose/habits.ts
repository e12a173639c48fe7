import { type ActivityLog, createActivityLog } from '../limits/activity.ts'
import { createShadowTally, type ShadowTally } from '../limits/shadow-tally.ts'

/** What is remembered of exchanges that are over. */
export interface Habits {
  /** What agents did lately; a reviewer's denial counts as well. */
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
