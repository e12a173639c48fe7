/**
 * Rate limit as a generic cell rate algorithm (ITU-T I.371): one number per key, the theoretical arrival time of the next
 * request. Exact over all threads that share the table, without timers. A key that was not used for long enough is the
 * same as an unknown one, and its slot is free.
 */
import type { SharedTable, TableShape } from './shared-table.ts'

export interface RateLimit {
  readonly requestsPerMinute: number
  /** Requests that may come at once. */
  readonly burst: number
}

/** A limit as the settings have it. */
interface PaceSettings {
  readonly RequestsPerMinute: number
  readonly Burst: number
}

export const paceOf = ({ RequestsPerMinute, Burst }: PaceSettings): RateLimit => ({
  requestsPerMinute: RequestsPerMinute,
  burst: Burst,
})

export type RateLimiter = ReturnType<typeof createRateLimiter>

/** Its table: 2 MiB, of which the system provides only what is used. More active keys than that must wait. */
export const rateShape: TableShape = { slots: 131_072, fields: 1 }

const arrivalField = 0

export function createRateLimiter(limit: RateLimit, table: SharedTable) {
  let interval = 60_000 / limit.requestsPerMinute
  let tolerance = interval * (limit.burst - 1)
  let early = 0
  return {
    /** Keys keep the time at which their next request would have been due. */
    use({ requestsPerMinute, burst }: RateLimit) {
      interval = 60_000 / requestsPerMinute
      tolerance = interval * (burst - 1)
    },
    /** Requests that could follow at once the one that was taken last. */
    left: () => Math.max(0, Math.floor(1e-6 - early / interval)),
    /** Takes one request at `now` (steady milliseconds). 0 when it may pass, else milliseconds until it may. */
    take(key: string, now: number): number {
      table.lock()
      try {
        const slot = table.claim(key, other => table.get(other, arrivalField) <= now)
        if (slot < 0) return interval
        const arrival = Math.max(table.get(slot, arrivalField), now)
        early = arrival - now - tolerance
        // Rounding must not refuse the last request of a burst.
        if (early > 1e-6) return early
        table.set(slot, arrivalField, arrival + interval)
        return 0
      } finally {
        table.unlock()
      }
    },
    /** Requests that the bucket lacks until it is full. */
    owed(key: string, now: number): number {
      return table.locked(() => {
        const slot = table.find(key)
        return slot < 0 ? 0 : Math.max(0, table.get(slot, arrivalField) - now) / interval
      })
    },
  }
}
