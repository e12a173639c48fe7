import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import type { Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'

/**
 * Takes one request from the agent's bucket, and one of its places for requests under way. Every authenticated attempt
 * counts against the rate, whatever becomes of it.
 */
export function limit(exchange: Exchange, parts: Parts): Refusal | undefined {
  const agentId = exchange.agent?.id ?? ''
  const { RequestsPerMinute, Burst, MaxInFlight } = parts.config.System.RateLimit
  const wait = parts.rateLimiter.take(agentId, parts.clock.steady())
  if (wait > 0) {
    parts.bounds.reached('agent_rate', agentId, exchange.requestId)
    return refuseRate(wait, `"agent";q=${RequestsPerMinute};w=60;burst=${Burst}`)
  }
  if (!parts.requests.take(agentId, 1, MaxInFlight)) {
    parts.bounds.reached('agent_requests', agentId, exchange.requestId)
    return refuse('agent_busy', undefined, { headers: ['Retry-After', '1'] })
  }
  exchange.holdsPlace = true
  return undefined
}

/** Gives back the agent's place. Further calls do nothing. */
export function leaveLimit(exchange: Exchange, parts: Parts): void {
  if (!exchange.holdsPlace) return
  exchange.holdsPlace = false
  parts.requests.give(exchange.agent?.id ?? '', 1)
}

/** @param wait milliseconds until the next request may pass */
function refuseRate(wait: number, policy: string): Refusal {
  const seconds = String(Math.ceil(wait / 1_000))
  return refuse('rate_limited', undefined, {
    headers: ['Retry-After', seconds, 'RateLimit-Policy', policy, 'RateLimit', `"agent";r=0;t=${seconds}`],
  })
}
