import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Config } from '../config/schema.ts'
import type { Breaker } from '../limits/breaker.ts'
import { breakerShape, createBreaker } from '../limits/breaker.ts'
import type { ConnectionCount } from '../limits/connection-count.ts'
import { createConnectionCount } from '../limits/connection-count.ts'
import type { SharedAmount } from '../limits/shared-amount.ts'
import { amountShape, createSharedAmount } from '../limits/shared-amount.ts'
import { createTableMemory, SharedTable } from '../limits/shared-table.ts'
import type { RateLimit, RateLimiter } from '../limits/token-bucket.ts'
import { createRateLimiter, rateShape } from '../limits/token-bucket.ts'
import { createMetricsMemory } from '../telemetry/metrics.ts'

/** Memory that all threads of a gateway work on: what is limited is limited for all of them together. */
export interface SharedMemory {
  readonly rates: SharedArrayBuffer
  readonly circuits: SharedArrayBuffer
  readonly connections: SharedArrayBuffer
  /** Proxied requests under way, by agent. */
  readonly requests: SharedArrayBuffer
  readonly metrics: SharedArrayBuffer
  /** Proxied requests under way: one number a thread, which that thread alone writes. */
  readonly inFlight: SharedArrayBuffer
}

interface Given {
  readonly passedSockets?: readonly number[]
}

/** Threads that serve requests: as many as asked for, or as there are processors. One when there is no port to share. */
export function threadsOf(config: Config, given: Given): number {
  const { Threads } = config.System.Server
  if (!sharesPort(config, given)) return 1
  return Threads === 0 ? availableParallelism() : Threads
}

/** Several threads can listen on a TCP port of our own alone. */
function sharesPort({ System: { Server } }: Config, { passedSockets = [] }: Given): boolean {
  return Server.Http.Enabled && passedSockets.length === 0
}

/** What start-up warns of, when more threads are asked for than can serve. */
export function threadsWarnings(config: Config, given: Given): readonly string[] {
  if (config.System.Server.Threads === 1 || sharesPort(config, given)) return []
  return [
    'System:Server:Threads: one thread serves, because a unix socket and passed sockets cannot be shared by several',
  ]
}

/**
 * The configuration of one of so many threads. Each has its part of the connections to upstreams, rounded up, since each
 * needs one: together they may be one fewer than there are threads above what is configured.
 */
export function shareOf(config: Config, threads: number): Config {
  const share = (all: number) => Math.ceil(all / threads)
  const { System, Proxy: proxy } = config
  return {
    ...config,
    System: {
      ...System,
      Server: { ...System.Server, Threads: threads },
    },
    Proxy: {
      ...proxy,
      MaxConnections: share(proxy.MaxConnections),
      MaxConnectionsPerOrigin: share(proxy.MaxConnectionsPerOrigin),
      MaxWaiting: share(proxy.MaxWaiting),
    },
  }
}

/** What one thread sees of it. */
export interface SharedLimits {
  readonly rateLimiter: RateLimiter
  /** Of callers of the management API. */
  readonly managementRate: RateLimiter
  readonly breaker: Breaker
  readonly connections: ConnectionCount
  /** Proxied requests under way, by agent. */
  readonly requests: SharedAmount
  /** One number: requests under way in this thread. */
  readonly inFlight: Int32Array<SharedArrayBuffer>
  /** Requests under way in all threads. */
  inFlightInAll(): number
  /** Tidies up behind a thread that has died. */
  forget(thread: number): void
}

export function createSharedMemory({ System }: Config): SharedMemory {
  const { Threads: threads } = System.Server
  return {
    rates: createTableMemory(rateShape, randomBytes(8)),
    circuits: createTableMemory(breakerShape(System.CircuitBreaker.Failures), randomBytes(8)),
    connections: createTableMemory(amountShape(threads), randomBytes(8)),
    requests: createTableMemory(amountShape(threads), randomBytes(8)),
    metrics: createMetricsMemory(threads),
    inFlight: new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT),
  }
}

/** @param thread number of this thread, from 0 */
export function openSharedLimits({ System }: Config, memory: SharedMemory, thread: number): SharedLimits {
  const { RateLimit, ManagementRateLimit, CircuitBreaker } = System
  const { Failures, WindowSeconds, OpenSeconds } = CircuitBreaker
  const rates = new SharedTable(memory.rates, rateShape, thread)
  const circuits = new SharedTable(memory.circuits, breakerShape(Failures), thread)
  const { MaxConnections, MaxConnectionsPerAddress, Threads } = System.Server
  const openTable = new SharedTable(memory.connections, amountShape(Threads), thread)
  const open = createSharedAmount(openTable, thread)
  const requestTable = new SharedTable(memory.requests, amountShape(Threads), thread)
  const requests = createSharedAmount(requestTable, thread)
  const all = new Int32Array(memory.inFlight)
  return {
    rateLimiter: createRateLimiter(paceOf(RateLimit), rates),
    managementRate: createManagementRate(paceOf(ManagementRateLimit), rates),
    breaker: createBreaker(
      { failures: Failures, windowMs: WindowSeconds * 1_000, openMs: OpenSeconds * 1_000 },
      circuits,
    ),
    connections: createConnectionCount({ all: MaxConnections, perPeer: MaxConnectionsPerAddress }, open),
    requests,
    inFlight: all.subarray(thread, thread + 1),
    inFlightInAll: () => all.reduce((sum, count) => sum + count, 0),
    forget(dead) {
      for (const table of [rates, circuits, openTable, requestTable]) table.releaseLock(dead)
      for (const amounts of [open, requests]) amounts.forget(dead)
      all[dead] = 0
    },
  }
}

interface PaceSettings {
  readonly RequestsPerMinute: number
  readonly Burst: number
}

const paceOf = ({ RequestsPerMinute, Burst }: PaceSettings): RateLimit => ({
  requestsPerMinute: RequestsPerMinute,
  burst: Burst,
})

/** In the same table, with keys of its own. */
function createManagementRate(pace: RateLimit, table: SharedTable): RateLimiter {
  const limiter = createRateLimiter(pace, table)
  return { take: (callerId, now) => limiter.take(`management ${callerId}`, now) }
}
