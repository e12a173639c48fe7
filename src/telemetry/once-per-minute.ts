import type { Clock } from '../runtime/clock.ts'

/** Events that callers cause are logged once in this time for each key, milliseconds. */
const intervalMs = 60_000
/** Keys that are remembered; events of further keys in the same minute are not logged. */
const maxKeys = 1_000

/** Whether an event is the first with its key in a minute, so that callers cannot fill the log. */
export function createOncePerMinute(clock: Clock): (key: string) => boolean {
  let reported = new Set<string>()
  let since = Number.NEGATIVE_INFINITY
  return key => {
    const now = clock.steady()
    if (now - since >= intervalMs) {
      reported = new Set()
      since = now
    }
    if (reported.size >= maxKeys || reported.has(key)) return false
    reported.add(key)
    return true
  }
}
