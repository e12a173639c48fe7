import type { Clock } from '../runtime/clock.ts'

/** Events that callers cause are logged once in this time for each key, milliseconds. */
const intervalMs = 60_000
/** Keys that are remembered; what more than that many in a minute do is not logged. */
const maxKeys = 1_000

/** Tells whether something is the first of its kind in a minute, so that nobody can fill the log with it. */
export function createOncePerMinute(clock: Clock): (key: string) => boolean {
  let known = new Set<string>()
  let since = Number.NEGATIVE_INFINITY
  return key => {
    const now = clock.steady()
    if (now - since >= intervalMs) {
      known = new Set()
      since = now
    }
    if (known.size >= maxKeys || known.has(key)) return false
    known.add(key)
    return true
  }
}
