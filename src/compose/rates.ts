/** The pace of callers: of agents on /proxy, for the fleet or for this gateway alone, and of callers of the management API. */
import type { Config } from '../config/schema.ts'
import { Leases } from '../fleet/leases.ts'
import {
  type AgentRate,
  type LeaseAnswer,
  type LeaseCall,
  LeasedBuckets,
  type Tokens,
} from '../limits/leased-bucket.ts'
import type { SharedTable } from '../limits/shared-table.ts'
import { createRateLimiter, type RateLimit, type RateLimiter } from '../limits/token-bucket.ts'
import type { Base } from './base.ts'

interface PaceSettings {
  readonly RequestsPerMinute: number
  readonly Burst: number
}

export const paceOf = ({ RequestsPerMinute, Burst }: PaceSettings): RateLimit => ({
  requestsPerMinute: RequestsPerMinute,
  burst: Burst,
})

/** Whether the rates of agents hold for all gateways together. */
export const sharesRates = ({ Storage, Fleet }: Config): boolean =>
  Storage.Provider === 'PostgreSQL' && Fleet.RateLimits === 'Shared'

interface Gateways {
  /** One number: the gateways of the fleet. */
  readonly gateways: SharedArrayBuffer
}

export interface RateParts extends Gateways {
  readonly rates: SharedTable
  /** Absent when each gateway counts by itself. */
  readonly leases: SharedTable | undefined
  /** How this thread gets tokens of the fleet. */
  readonly tokensFor: (buckets: LeasedBuckets) => Tokens
}

interface Pace {
  readonly agentRate: AgentRate
  readonly tokens: Tokens | undefined
}

export function createAgentRate(limit: RateLimit, { rates, leases, gateways, tokensFor }: RateParts): Pace {
  if (leases === undefined) {
    const { take } = createRateLimiter(limit, rates)
    return { agentRate: { take, asked: async () => {} }, tokens: undefined }
  }
  const count = new Int32Array(gateways)
  const members = () => Math.max(1, count[0]!)
  const buckets = new LeasedBuckets({ limit, leases, rates, members, onNeed: key => tokens.need(key) })
  const tokens = tokensFor(buckets)
  const agentRate: AgentRate = { take: (key, now) => buckets.take(key, now), asked: key => tokens.asked(key) }
  return { agentRate, tokens }
}

/** Buckets of tokens that all gateways share. */
export interface SharedRates {
  lease(call: LeaseCall): Promise<readonly LeaseAnswer[]>
  /** How many gateways there are. */
  gateways(): number
}

export interface TokenParts extends Pick<Base, 'config' | 'clock'> {
  readonly rates: SharedRates | undefined
}

/** How the main thread leases tokens, for all threads. */
export function createTokens({ config, clock, rates }: TokenParts, { gateways }: Gateways): RateParts['tokensFor'] {
  const count = new Int32Array(gateways)
  const limit = paceOf(config.System.RateLimit)
  return buckets =>
    new Leases({
      buckets,
      clock,
      async lease(asks) {
        if (rates === undefined) throw new Error('cannot happen: there are leases without shared rates')
        count[0] = rates.gateways()
        return rates.lease({ limit, asks })
      },
    })
}

/** In the same table as agents, with keys of its own. */
export function createManagementRate(pace: RateLimit, table: SharedTable): RateLimiter {
  const limiter = createRateLimiter(pace, table)
  return { take: (callerId, now) => limiter.take(`management ${callerId}`, now) }
}
