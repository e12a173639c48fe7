import type { Clock } from '../runtime/clock.ts'
import { LRUCache } from '../runtime/lru.ts'

const windowMs = 60_000
/** Keys remembered. The oldest are forgotten first, so a flood of made-up keys costs no more memory. */
const maxKeys = 20_000

interface FailedLogins {
  /** Steady times of failures within the window, oldest first. */
  failures: number[]
  /** Attempts under way: each may turn out a failure, so it counts as one until it is over. */
  underway: number
  /** Steady time until which the limit of the fleet is reached. */
  fullUntil: number
}

/** Room for attempts in all gateways of a fleet together. */
export interface FleetAttemptLimit {
  /** Counts an attempt: 0, or milliseconds until it is allowed. Undefined when the fleet does not answer. */
  take(key: string): Promise<number | undefined>
  /** A counted attempt did not fail. */
  giveBack(key: string): void
  gateways(): number
}

/** An attempt that is within the limit of this gateway. */
export interface LoginAttempt {
  /**
   * Counts the attempt in the fleet, too: undefined, or seconds to wait when the limit is reached. The attempt must be ended
   * in both cases.
   */
  confirm(): Promise<number | undefined>
  /** Each attempt is ended once. */
  end(failed: boolean): void
}

/** Counts failures per key. */
export type Throttle = ReturnType<typeof createThrottle>

/**
 * At most `limit` failures a key within a minute, attempts under way included.
 *
 * @param fleet counts with other gateways; absent when this one counts by itself
 */
export function createThrottle(limit: number, clock: Clock, fleet?: FleetAttemptLimit) {
  const known = new LRUCache<string, FailedLogins>({ max: maxKeys })

  function attemptsOf(key: string): FailedLogins {
    const attempts = known.get(key) ?? { failures: [], underway: 0, fullUntil: 0 }
    const since = clock.steady() - windowMs
    while ((attempts.failures[0] ?? Infinity) <= since) attempts.failures.shift()
    known.set(key, attempts)
    return attempts
  }

  const secondsUntil = (then: number): number => Math.max(1, Math.ceil((then - clock.steady()) / 1_000))

  /** This gateway's share, while the fleet does not answer. */
  function isAboveShare(key: string, gateways: number): boolean {
    const { failures, underway } = attemptsOf(key)
    return failures.length + underway > Math.max(1, Math.floor(limit / gateways))
  }

  function createAttempt(key: string): LoginAttempt {
    let isTaken = false
    return {
      async confirm() {
        if (fleet === undefined) return undefined
        const wait = await fleet.take(key)
        if (wait === undefined) return isAboveShare(key, fleet.gateways()) ? 1 : undefined
        isTaken = wait === 0
        if (isTaken) return undefined
        const attempts = attemptsOf(key)
        attempts.fullUntil = Math.max(attempts.fullUntil, clock.steady() + wait)
        return secondsUntil(attempts.fullUntil)
      },
      end(failed) {
        const attempts = attemptsOf(key)
        attempts.underway = Math.max(0, attempts.underway - 1)
        if (failed) attempts.failures.push(clock.steady())
        else if (isTaken) fleet?.giveBack(key)
      },
    }
  }

  return {
    /**
     * Begins an attempt; seconds to wait when the limit is reached. It does not ask the fleet, so a flood costs the fleet
     * nothing.
     */
    begin(key: string): LoginAttempt | number {
      const attempts = attemptsOf(key)
      if (clock.steady() < attempts.fullUntil) return secondsUntil(attempts.fullUntil)
      if (attempts.failures.length >= limit) return secondsUntil((attempts.failures[0] ?? 0) + windowMs)
      // The other attempts may succeed and end before.
      if (attempts.failures.length + attempts.underway >= limit) return 1
      attempts.underway++
      return createAttempt(key)
    },
  }
}
