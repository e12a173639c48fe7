import type { Clock } from '../clock.ts'
import { LRUCache } from '../lru.ts'

const windowMs = 60_000
/** Keys remembered. The oldest are forgotten first, so a flood of made-up keys costs no more memory. */
const maxKeys = 20_000

interface Attempts {
  /** Steady times of failures within the window, oldest first. */
  failures: number[]
  /** Attempts under way: each may turn out a failure, so it counts as one until it is over. */
  underway: number
}

/** Counts failures per key. */
export interface Throttle {
  /** Seconds to wait, when there is no room for an attempt; undefined when it has begun. */
  begin(key: string): number | undefined
  /** Each begun attempt is ended once. */
  end(key: string, failed: boolean): void
  /** Counts a failure of an attempt that was made elsewhere. */
  fail(key: string): void
}

/**
 * At most `limit` failures a key within a minute, attempts under way included.
 *
 * @param onFailure called for each attempt that failed here
 */
export function createThrottle(limit: number, clock: Clock, onFailure: (key: string) => void = () => {}): Throttle {
  const known = new LRUCache<string, Attempts>({ max: maxKeys })

  function attemptsOf(key: string): Attempts {
    const attempts = known.get(key) ?? { failures: [], underway: 0 }
    const since = clock.steady() - windowMs
    while ((attempts.failures[0] ?? Infinity) <= since) attempts.failures.shift()
    known.set(key, attempts)
    return attempts
  }

  return {
    begin(key) {
      const attempts = attemptsOf(key)
      if (attempts.failures.length >= limit) {
        return Math.max(1, Math.ceil(((attempts.failures[0] ?? 0) + windowMs - clock.steady()) / 1000))
      }
      // The others may well succeed, and then there is room again.
      if (attempts.failures.length + attempts.underway >= limit) return 1
      attempts.underway++
      return undefined
    },
    end(key, failed) {
      const attempts = attemptsOf(key)
      attempts.underway = Math.max(0, attempts.underway - 1)
      if (!failed) return
      attempts.failures.push(clock.steady())
      onFailure(key)
    },
    fail: key => void attemptsOf(key).failures.push(clock.steady()),
  }
}
