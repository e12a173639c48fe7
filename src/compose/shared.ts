import { randomBytes } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import type { Breaker } from '../limits/breaker.ts'
import { breakerShape, createBreaker } from '../limits/breaker.ts'
import { createTableMemory, SharedTable } from '../limits/shared-table.ts'
import type { RateLimiter } from '../limits/token-bucket.ts'
import { createRateLimiter, rateShape } from '../limits/token-bucket.ts'

/** Memory that all threads of a gateway work on: what is limited is limited for all of them together. */
export interface SharedMemory {
  readonly rates: SharedArrayBuffer
  readonly circuits: SharedArrayBuffer
  /** Proxied requests under way: one number a thread, which that thread alone writes. */
  readonly inFlight: SharedArrayBuffer
}

/** What one thread sees of it. */
export interface SharedLimits {
  readonly rateLimiter: RateLimiter
  readonly breaker: Breaker
  /** One number: requests under way in this thread. */
  readonly inFlight: Int32Array<SharedArrayBuffer>
  /** Requests under way in all threads. */
  inFlightInAll(): number
  /** Tidies up behind a thread that has died. */
  forget(thread: number): void
}

/** @param threads most threads at a time */
export function createSharedMemory({ System }: Config, threads: number): SharedMemory {
  return {
    rates: createTableMemory(rateShape, randomBytes(8)),
    circuits: createTableMemory(breakerShape(System.CircuitBreaker.Failures), randomBytes(8)),
    inFlight: new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT),
  }
}

/** @param thread number of this thread, from 0 */
export function openSharedLimits({ System }: Config, memory: SharedMemory, thread: number): SharedLimits {
  const { RateLimit, CircuitBreaker } = System
  const { Failures, WindowSeconds, OpenSeconds } = CircuitBreaker
  const rates = new SharedTable(memory.rates, rateShape, thread)
  const circuits = new SharedTable(memory.circuits, breakerShape(Failures), thread)
  const all = new Int32Array(memory.inFlight)
  return {
    rateLimiter: createRateLimiter({ requestsPerMinute: RateLimit.RequestsPerMinute, burst: RateLimit.Burst }, rates),
    breaker: createBreaker(
      { failures: Failures, windowMs: WindowSeconds * 1_000, openMs: OpenSeconds * 1_000 },
      circuits,
    ),
    inFlight: all.subarray(thread, thread + 1),
    inFlightInAll: () => all.reduce((sum, count) => sum + count, 0),
    forget(dead) {
      for (const table of [rates, circuits]) table.releaseLock(dead)
      all[dead] = 0
    },
  }
}
