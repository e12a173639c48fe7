import type { Refusal } from '../errors.ts'
import { refuse } from '../errors.ts'
import type { Exchange } from './exchange.ts'
import type { Parts } from './parts.ts'

/** Takes one request from the agent's bucket. Every authenticated attempt counts, whatever becomes of it. */
export function limit(exchange: Exchange, parts: Parts): Refusal | undefined {
  const wait = parts.rateLimiter.take(exchange.agent?.id ?? '', parts.clock.steady())
  if (wait === 0) return undefined
  const seconds = String(Math.ceil(wait / 1_000))
  const { RequestsPerMinute, Burst } = parts.config.System.RateLimit
  return refuse('rate_limited', undefined, {
    headers: [
      'Retry-After',
      seconds,
      'RateLimit-Policy',
      `"agent";q=${RequestsPerMinute};w=60;burst=${Burst}`,
      'RateLimit',
      `"agent";r=0;t=${seconds}`,
    ],
  })
}
