import { type Refusal, refuse } from '../errors.ts'
import type { Authenticated, Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'

/**
 * Takes one request from the agent's bucket, and one of its places for requests under way. Every authenticated request
 * counts against the rate, also one that is refused later.
 */
export function limit(exchange: Authenticated, parts: Parts): Refusal | undefined {
  const { agent, startedAt, requestId } = exchange
  const { RequestsPerMinute, Burst, MaxInFlight } = parts.config.System.RateLimit
  const wait = parts.rateLimiter.take(agent.id, startedAt)
  if (wait > 0) {
    parts.bounds.reached('agent_rate', agent.id, requestId)
    return refuseRate(wait, `"agent";q=${RequestsPerMinute};w=60;burst=${Burst}`)
  }
  if (!parts.requests.take(agent.id, 1, MaxInFlight)) {
    parts.bounds.reached('agent_requests', agent.id, requestId)
    return refuse('agent_busy', undefined, { headers: ['Retry-After', '1'] })
  }
  exchange.placeOf = agent.id
  return undefined
}

/** Gives back the agent's place. Further calls do nothing. */
export function leaveLimit(exchange: Exchange, parts: Parts): void {
  if (exchange.placeOf === undefined) return
  parts.requests.give(exchange.placeOf, 1)
  exchange.placeOf = undefined
}

/** @param wait milliseconds until the next request may pass */
function refuseRate(wait: number, policy: string): Refusal {
  const seconds = String(Math.ceil(wait / 1_000))
  return refuse('rate_limited', undefined, {
    headers: ['Retry-After', seconds, 'RateLimit-Policy', policy, 'RateLimit', `"agent";r=0;t=${seconds}`],
  })
}
