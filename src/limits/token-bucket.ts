/**
 * Rate limit as a generic cell rate algorithm (ITU-T I.371): one number per key, the theoretical arrival time of
 * the next request. Exact, no timers; a key unused long enough is the same as an unknown one and is dropped.
 */
export interface RateLimit {
  readonly requestsPerMinute: number
  /** Requests that may come at once. */
  readonly burst: number
}

export interface RateLimiter {
  /** Takes one request at `now` (steady milliseconds). 0 when it may pass, else milliseconds until it may. */
  take(key: string, now: number): number
  /** Forgets keys that are idle at `now`. */
  sweep(now: number): void
  readonly size: number
}

export function createRateLimiter(limit: RateLimit): RateLimiter {
  const interval = 60_000 / limit.requestsPerMinute
  const tolerance = interval * (limit.burst - 1)
  const arrivals = new Map<string, number>()
  return {
    take(key, now) {
      const arrival = Math.max(arrivals.get(key) ?? now, now)
      const early = arrival - now - tolerance
      // Rounding must not refuse the last request of a burst.
      if (early > 1e-6) return early
      arrivals.set(key, arrival + interval)
      return 0
    },
    sweep(now) {
      for (const [key, arrival] of arrivals) if (arrival <= now) arrivals.delete(key)
    },
    get size() {
      return arrivals.size
    },
  }
}
