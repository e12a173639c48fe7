/** The windows of budgets: hours, days, weeks and months of a time zone's calendar. */

export type Period = 'Hour' | 'Day' | 'Week' | 'Month'

/** Milliseconds since the epoch. `end` is the start of the next one. */
export interface BudgetWindow {
  readonly start: number
  readonly end: number
}

const hour = 3_600_000
const day = 24 * hour

/**
 * Finds the window of a time. A clock that goes back opens no window again: until it has caught up, the window stays.
 *
 * @param timeZone IANA name
 */
export function createWindows(per: Period, timeZone: string): (now: number) => BudgetWindow {
  const offsetAt = createOffsets(timeZone)
  let current: BudgetWindow = { start: 0, end: 0 }
  return now => {
    if (now >= current.end) current = per === 'Hour' ? hourOf(now, offsetAt) : calendarWindow(now, per, offsetAt)
    return current
  }
}

type OffsetAt = (at: number) => number

/** How far the wall time of a zone is ahead of UTC, milliseconds. */
function createOffsets(timeZone: string): OffsetAt {
  if (timeZone === 'UTC') return () => 0
  // The Swedish form is ISO 8601 with a space: 2026-01-05 10:00:00.
  const format = new Intl.DateTimeFormat('sv', { timeZone, hourCycle: 'h23', dateStyle: 'short', timeStyle: 'medium' })
  return at => {
    const second = Math.floor(at / 1_000) * 1_000
    return Date.parse(`${format.format(second).replace(' ', 'T')}Z`) - second
  }
}

/** Hours last an hour, also when the clocks are changed. */
function hourOf(now: number, offsetAt: OffsetAt): BudgetWindow {
  const local = now + offsetAt(now)
  const start = now - (((local % hour) + hour) % hour)
  return { start, end: start + hour }
}

function calendarWindow(now: number, per: Exclude<Period, 'Hour'>, offsetAt: OffsetAt): BudgetWindow {
  const local = new Date(now + offsetAt(now))
  const [year, month, date] = [local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate()]
  const monday = date - ((local.getUTCDay() + 6) % 7)
  const midnight = (...of: [month: number, date: number]) => midnightAt(Date.UTC(year, ...of), offsetAt)
  if (per === 'Day') return { start: midnight(month, date), end: midnight(month, date + 1) }
  if (per === 'Week') return { start: midnight(month, monday), end: midnight(month, monday + 7) }
  return { start: midnight(month, 1), end: midnight(month + 1, 1) }
}

/**
 * When a day begins. Where midnight comes twice the day begins with the second one, and where it is left out, with the change of
 * the clocks.
 *
 * @param local midnight by the wall clock, as if it were UTC
 */
function midnightAt(local: number, offsetAt: OffsetAt): number {
  const candidates = [local - day, local + day].map(at => local - offsetAt(at))
  const valid = candidates.filter(at => offsetAt(at) === local - at)
  return Math.max(...(valid.length > 0 ? valid : candidates))
}
