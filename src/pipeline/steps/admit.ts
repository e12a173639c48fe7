import { type Refusal, refuse } from '../../base/refusals.ts'
import { parseTarget } from '../../base/target.ts'
import { takeAsked } from '../../limits/caller-rate.ts'
import { inFlightFields, rateFields, secondsUntilFull } from '../../limits/rate-fields.ts'
import { paceOf } from '../../limits/token-bucket.ts'
import type { Authenticated, Exchange, StepOutcome, StepResult } from '../exchange.ts'
import type { Parts } from '../parts.ts'
import { isStillAdmitted } from '../rights.ts'

/** Parses the target, and counts the request against the limits of its agent: once, even when it starts again. */
export function admit(exchange: Authenticated, parts: Parts): StepResult {
  if (exchange.target !== undefined) return undefined
  // Nothing gives back the slot of a request whose client left while its token was verified.
  if (exchange.isOver) return refuse('invalid_request')
  const target = parseTarget(exchange.rawTarget)
  if (typeof target === 'string') return refuse('invalid_target', target)
  exchange.target = target
  return limit(exchange, parts)
}

export function checkSize({ fields }: Exchange, { config }: Parts): Refusal | undefined {
  const { MaxRequestBytes } = config.Proxy
  return MaxRequestBytes > 0 && fields.contentLength > MaxRequestBytes ? refuse('body_too_large') : undefined
}

/**
 * Takes one request from the agent's bucket, and one of the agent's slots (MaxInFlight). Every authenticated request
 * counts against the rate, also one that is refused later. Waits only when the fleet must be asked for tokens first.
 */
function limit(exchange: Authenticated, parts: Parts): StepResult {
  const { agent, startedAt, addressing } = exchange
  if (addressing.tunnel?.countsRequest() === false) return takeSlot(exchange, parts)
  const wait = parts.agentRate.take(agent.id, startedAt)
  // Whether a CONNECT takes a place is decided later (intercept.ts).
  const slot = addressing.road === 'tunnel' ? undefined : takeSlot
  if (wait === undefined) return slot?.(exchange, parts) ?? untilAsked(exchange, parts)
  if (wait > 0) return refuseRate(exchange, wait, parts)
  if (parts.config.System.RateLimit.Fields !== 'Refused') noteLow(exchange, parts)
  return slot?.(exchange, parts)
}

/** An answer names what the agent may still ask when little is left. */
function noteLow(exchange: Exchange, { agentRate, config }: Parts): void {
  const { RateLimit } = config.System
  const left = agentRate.left()
  if (left === undefined || (RateLimit.Fields === 'Low' && left >= RateLimit.Burst / 10)) return
  const limit = paceOf(RateLimit)
  exchange.rateFields = rateFields(limit, left, secondsUntilFull(limit, left))
}

async function untilAsked(exchange: Authenticated, parts: Parts): Promise<StepOutcome> {
  const { agentRate, clock } = parts
  const asking = { now: () => clock.steady(), isOver: () => exchange.isOver }
  const wait = await takeAsked(agentRate, exchange.agent.id, asking)
  if (exchange.isOver) return undefined
  if (wait > 0) return refuseRate(exchange, wait, parts)
  return isStillAdmitted(exchange, parts) ? undefined : 'again'
}

/** Takes one of the agent's slots (MaxInFlight). */
export function takeSlot(exchange: Authenticated, parts: Parts): Refusal | undefined {
  const { agent, requestId } = exchange
  if (!parts.requests.take(agent.id, 1, parts.config.System.RateLimit.MaxInFlight)) {
    parts.bounds.reached('agent_requests', agent.id, requestId)
    return refuse('agent_busy', undefined, { headers: inFlightFields(parts.config.System.RateLimit.MaxInFlight) })
  }
  exchange.slotOf = agent.id
  return undefined
}

/** Gives back the agent's slot at the end of an exchange. */
export function releaseSlot(exchange: Exchange, parts: Parts): void {
  if (exchange.slotOf === undefined) return
  parts.requests.give(exchange.slotOf, 1)
  exchange.slotOf = undefined
}

/** @param wait milliseconds until the next request may pass */
function refuseRate({ agent, requestId }: Authenticated, wait: number, parts: Parts): Refusal {
  parts.bounds.reached('agent_rate', agent.id, requestId)
  const seconds = Math.ceil(wait / 1_000)
  const fields = rateFields(paceOf(parts.config.System.RateLimit), 0, seconds)
  return refuse('rate_limited', undefined, { headers: ['Retry-After', String(seconds), ...fields] })
}
