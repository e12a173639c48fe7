import { systemClock } from '../runtime/clock.ts'
import { UsageError } from './shell.ts'

const dayMs = 86_400_000

/** The time of an option --since, milliseconds since the epoch; 0 when it is absent. @throws UsageError */
export function sinceOf(given: string | undefined): number {
  if (given === undefined) return 0
  const [, days] = /^(\d{1,4})d$/.exec(given) ?? []
  if (days === undefined) throw new UsageError('--since must be a number of days: 7d')
  return systemClock.now() - Number(days) * dayMs
}
