import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { longestHeldBody, maxHeldBytes } from '../config/check.ts'
import type { LiveSettings } from '../config/live.ts'
import type { Config } from '../config/schema.ts'
import type { PassedEndpoint } from '../http/listeners.ts'
import { Breaker, breakerShape } from '../limits/breaker.ts'
import { leaseShape } from '../limits/leased-bucket.ts'
import { createQuota, type Quota, type QuotaLimits } from '../limits/quota.ts'
import type { SharedMemory } from '../limits/shared-memory.ts'
import {
  amountShape,
  createSharedAmount,
  createTableMemory,
  type SharedAmount,
  SharedTable,
} from '../limits/shared-table.ts'
import { spendShape } from '../limits/spend-slots.ts'
import { rateShape } from '../limits/token-bucket.ts'
import type { Log } from '../log/log.ts'
import { createMetricsMemory } from '../telemetry/metrics.ts'
import { passedToAgents } from './entrypoints.ts'
import {
  createPaces,
  createTokens,
  type LeasedRate,
  type RateParts,
  sharesRates,
  type TokenBucketParts,
} from './rates.ts'
import { createSpendLeases, openSpend, type SpendFor, type SpendLeaseParts, type SpendLimits } from './spend.ts'

interface ListeningOptions {
  readonly passedSockets?: readonly PassedEndpoint[]
}

/** Threads that serve requests: as many as asked for, or as there are processors. One when there is no port to share. */
export function threadsOf(config: Config, given: ListeningOptions): number {
  const { Threads } = config.System.Server
  if (!sharesPort(config, given)) return 1
  return Threads === 0 ? availableParallelism() : Threads
}

/** Several threads can share only a TCP port that this process opens. */
function sharesPort({ System: { Server } }: Config, { passedSockets = [] }: ListeningOptions): boolean {
  return Server.Http.Enabled && passedToAgents(passedSockets).length === 0
}

/** Warnings at start, when more threads are configured than can serve. */
export function threadsWarnings(config: Config, given: ListeningOptions): readonly string[] {
  if (config.System.Server.Threads === 1 || sharesPort(config, given)) return []
  return [
    'System:Server:Threads: one thread serves, because a unix socket and passed sockets cannot be shared by several',
  ]
}

/**
 * The configuration of one of several threads. Each thread has its share of the connections to upstreams, rounded up, since
 * each needs at least one. The sum may exceed the setting by the number of threads less one.
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

/** The limits as one thread uses them. */
export interface SharedLimits {
  readonly agentRate: LeasedRate
  /** Rate of callers of the management API, for the main thread alone. */
  readonly managementRate: LeasedRate
  /** Undefined without budgets. */
  readonly spend: SpendLimits | undefined
  readonly breaker: Breaker
  readonly connections: Quota<'connections' | 'address_connections'>
  /** Proxied requests under way, by agent. */
  readonly requests: SharedAmount
  /** Open tunnels of the forward proxy, by agent. */
  readonly tunnels: SharedAmount
  /** Bytes of bodies that are held, by agent. */
  readonly heldBytes: Quota<'held_bytes' | 'agent_held_bytes'>
  /** One number: requests under way in this thread. */
  readonly inFlight: Int32Array<SharedArrayBuffer>
  /** Requests under way in all threads. */
  inFlightInAll(): number
  /** Releases the reservations of a thread that has died. */
  forget(thread: number): void
}

export function createSharedMemory(config: Config): SharedMemory {
  const { System } = config
  const { Threads: threads } = System.Server
  return {
    rates: createTableMemory(rateShape, randomBytes(8)),
    leases: sharesRates(config) ? createTableMemory(leaseShape, randomBytes(8)) : undefined,
    gateways: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
    spend: config.Budgets.length > 0 ? createTableMemory(spendShape(threads), randomBytes(8)) : undefined,
    circuits: createTableMemory(breakerShape(System.CircuitBreaker.Failures), randomBytes(8)),
    connections: createTableMemory(amountShape(threads), randomBytes(8)),
    requests: createTableMemory(amountShape(threads), randomBytes(8)),
    tunnels: createTableMemory(amountShape(threads), randomBytes(8)),
    heldBytes: createTableMemory(amountShape(threads), randomBytes(8)),
    metrics: createMetricsMemory(threads),
    inFlight: new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT),
  }
}

const circuitWords = {
  opened: 'circuit opened',
  closed: 'circuit closed',
  probeFailed: 'circuit stays open: its probe failed',
}

/** An agent may use a quarter, but always enough for one body. */
function heldBytesLimits(config: Config): QuotaLimits {
  const all = maxHeldBytes(config)
  return { all, each: Math.min(all, Math.max(all / 4, longestHeldBody(config))) }
}

export interface LimitsParts {
  readonly memory: SharedMemory
  /** Number of this thread, from 0. */
  readonly thread: number
  readonly log: Pick<Log, 'warn' | 'info'>
  readonly tokensFor: RateParts['tokensFor']
  readonly spendFor: SpendFor
  readonly onSettings: LiveSettings['onChange']
}

/** Failures within this time open a circuit, milliseconds. */
const failuresWindowMs = 60_000

export function openSharedLimits(
  config: Config,
  { memory, thread, log, tokensFor, spendFor, onSettings }: LimitsParts,
): SharedLimits {
  const { System } = config
  const { Failures, OpenSeconds } = System.CircuitBreaker
  const rates = new SharedTable(memory.rates, rateShape, thread)
  const circuits = new SharedTable(memory.circuits, breakerShape(Failures), thread)
  const { MaxConnections, MaxConnectionsPerAddress, Threads } = System.Server
  const tables = [rates, circuits]
  const amounts: SharedAmount[] = []
  const amountOf = (buffer: SharedArrayBuffer): SharedAmount => {
    const table = new SharedTable(buffer, amountShape(Threads), thread)
    const amount = createSharedAmount(table, thread)
    tables.push(table)
    amounts.push(amount)
    return amount
  }
  const all = new Int32Array(memory.inFlight)
  const leases = memory.leases && new SharedTable(memory.leases, leaseShape, thread)
  if (leases !== undefined) tables.push(leases)
  const spend = memory.spend && openSpend(new SharedTable(memory.spend, spendShape(Threads), thread), spendFor)
  if (spend !== undefined) tables.push(spend.table)
  const rateParts = { rates, leases, gateways: memory.gateways, tokensFor }
  return {
    ...createPaces(System, rateParts, onSettings),
    spend,
    breaker: new Breaker(
      { failures: Failures, windowMs: failuresWindowMs, openMs: OpenSeconds * 1_000 },
      circuits,
      ({ change, ...whose }) => log[change === 'closed' ? 'info' : 'warn'](whose, circuitWords[change]),
    ),
    connections: createQuota(
      { all: MaxConnections, each: MaxConnectionsPerAddress },
      { all: 'connections', each: 'address_connections' },
      amountOf(memory.connections),
    ),
    requests: amountOf(memory.requests),
    tunnels: amountOf(memory.tunnels),
    heldBytes: createQuota(
      heldBytesLimits(config),
      { all: 'held_bytes', each: 'agent_held_bytes' },
      amountOf(memory.heldBytes),
    ),
    inFlight: all.subarray(thread, thread + 1),
    inFlightInAll: () => all.reduce((sum, count) => sum + count, 0),
    forget(dead) {
      for (const table of tables) table.releaseLock(dead)
      for (const amount of amounts) amount.forget(dead)
      spend?.book.forget(dead)
      all[dead] = 0
    },
  }
}

export type MainLimitsParts = TokenBucketParts & SpendLeaseParts & Pick<LimitsParts, 'log' | 'memory' | 'onSettings'>

/** The limits as the main thread uses them, which leases for all threads. */
export function openMainLimits(parts: MainLimitsParts, closers: (() => unknown)[]): SharedLimits {
  const { config, memory, log, onSettings } = parts
  const leases = { tokensFor: createTokens(parts, memory), spendFor: createSpendLeases(parts) }
  const limits = openSharedLimits(config, { memory, thread: 0, log, onSettings, ...leases })
  closers.push(() => limits.spend?.leases.finish())
  for (const { tokens } of [limits.agentRate, limits.managementRate]) closers.push(() => tokens?.close())
  return limits
}
