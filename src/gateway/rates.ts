/**
 * Limits for the fleet, or for this gateway alone: rates of agents on /proxy and of callers of the management API, failed
 * logins.
 */
import type { LiveSettings } from '../config/live.ts'
import type { Config } from '../config/schema.ts'
import { FleetAttempts } from '../fleet/attempts.ts'
import { Leases } from '../fleet/leases.ts'
import type { CallerRate } from '../limits/caller-rate.ts'
import { type LeaseAnswer, type LeaseCall, type TokenLeases, usableMs } from '../limits/lease.ts'
import { LeasedBuckets } from '../limits/leased-bucket.ts'
import type { SharedTable } from '../limits/shared-table.ts'
import { createRateLimiter, paceOf, type RateLimit } from '../limits/token-bucket.ts'
import type { LoginLimit } from '../tokens/open.ts'
import type { Base } from './base.ts'

/** Whether limits hold for all gateways together. */
export const sharesRates = ({ Storage, Fleet }: Config): boolean =>
  Storage.Provider === 'PostgreSQL' && Fleet.RateLimits === 'Shared'

interface GatewayCount {
  /** One number: the gateways of the fleet. */
  readonly gateways: SharedArrayBuffer
}

export interface RateParts extends GatewayCount {
  readonly rates: SharedTable
  /** Absent when each gateway counts by itself. */
  readonly leases: SharedTable | undefined
  /** How this thread gets tokens of the fleet. */
  readonly tokensFor: (buckets: LeasedBuckets) => TokenLeases
}

export interface LeasedRate extends CallerRate {
  /** Absent when each gateway counts by itself. */
  readonly tokens: TokenLeases | undefined
  use(limit: RateLimit): void
}

/** The rates of agents on /proxy, and of callers of the management API. */
export function createPaces(
  { RateLimit: ofAgents, ManagementRateLimit: ofCallers }: Config['System'],
  parts: RateParts,
  onSettings: LiveSettings['onChange'],
): { readonly agentRate: LeasedRate; readonly managementRate: LeasedRate } {
  const agentRate = createPace(paceOf(ofAgents), parts)
  const managementRate = createManagementPace(paceOf(ofCallers), parts)
  onSettings(({ System }) => () => {
    agentRate.use(paceOf(System.RateLimit))
    managementRate.use(paceOf(System.ManagementRateLimit))
  })
  return { agentRate, managementRate }
}

function createPace(limit: RateLimit, { rates, leases, gateways, tokensFor }: RateParts): LeasedRate {
  if (leases === undefined) {
    const { take, use, left } = createRateLimiter(limit, rates)
    return { take, use, left, asked: async () => {}, tokens: undefined }
  }
  const count = new Int32Array(gateways)
  const members = () => Math.max(1, count[0]!)
  const buckets = new LeasedBuckets({ limit, leases, rates, members, onNeed: key => tokens.need(key) })
  const tokens = tokensFor(buckets)
  return {
    take: (key, now) => buckets.take(key, now),
    asked: key => tokens.asked(key),
    left: () => undefined,
    tokens,
    use(changed) {
      buckets.limit = changed
    },
  }
}

/** Buckets of tokens that all gateways share. */
export interface SharedRates {
  lease(call: LeaseCall): Promise<readonly LeaseAnswer[]>
  gateways(): number
}

export interface TokenBucketParts extends Pick<Base, 'clock'> {
  readonly rates: SharedRates | undefined
}

/** How the main thread leases tokens, for all threads. */
export function createTokens({ clock, rates }: TokenBucketParts, { gateways }: GatewayCount): RateParts['tokensFor'] {
  const count = new Int32Array(gateways)
  return buckets =>
    new Leases({
      book: buckets,
      clock,
      lateMs: usableMs,
      async lease(asks) {
        if (rates === undefined) throw new Error('cannot happen: there are leases without shared rates')
        count[0] = rates.gateways()
        return rates.lease({ limit: buckets.limit, asks })
      },
    })
}

/** The rate of callers of the management API. It uses the tables of agents with separate keys. */
function createManagementPace(limit: RateLimit, parts: RateParts): LeasedRate {
  const { take, asked, ...pace } = createPace(limit, parts)
  const keyOf = (callerId: string) => `management ${callerId}`
  return {
    take: (callerId, now) => take(keyOf(callerId), now),
    asked: callerId => asked(keyOf(callerId)),
    ...pace,
  }
}

/** The limit of failed logins in all gateways together; undefined when each gateway counts by itself. */
export function createLoginLimit(config: Config, rates: SharedRates | undefined): LoginLimit | undefined {
  if (rates === undefined || !sharesRates(config)) return undefined
  return (of, perMinute) => {
    const limit = { requestsPerMinute: perMinute, burst: perMinute }
    const attempts = new FleetAttempts({ prefix: `login ${of} `, lease: asks => rates.lease({ limit, asks }) })
    return {
      take: key => attempts.take(key),
      giveBack: key => attempts.giveBack(key),
      gateways: () => Math.max(1, rates.gateways()),
    }
  }
}
