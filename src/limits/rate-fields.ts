/** Fields that tell a caller how much it may still ask (draft-ietf-httpapi-ratelimit-headers-11). */
import type { RateLimit } from './token-bucket.ts'

/** The policy in these fields: upstreams may have policies of their own beside it. */
const policyName = 'agent-gateway'

/** What was written last: a caller at its pace, and all that are refused in one second, have the same figures. */
let last = { requestsPerMinute: 0, burst: 0, left: 0, seconds: 0, fields: [] as readonly string[] }

/**
 * @param left requests that may come now
 * @param seconds until the bucket is full, or until the next request may come when none is left
 */
export function rateFields({ requestsPerMinute, burst }: RateLimit, left: number, seconds: number): readonly string[] {
  const isSame = last.left === left && last.seconds === seconds && last.burst === burst
  if (isSame && last.requestsPerMinute === requestsPerMinute) return last.fields
  // A parameter that the draft does not define needs a prefix.
  const policy = `"${policyName}";q=${requestsPerMinute};w=60;agw-burst=${burst}`
  const fields = ['RateLimit-Policy', policy, 'RateLimit', `"${policyName}";r=${left};t=${seconds}`]
  last = { requestsPerMinute, burst, left, seconds, fields }
  return fields
}

/** Seconds until a bucket is full in which so many are left. */
export const secondsUntilFull = ({ requestsPerMinute, burst }: RateLimit, left: number): number =>
  Math.ceil(((burst - left) * 60) / requestsPerMinute)

/** @param max requests under way at once, all of which are */
export const inFlightFields = (max: number): string[] => [
  'RateLimit-Policy',
  `"in-flight";q=${max};qu="concurrent-requests"`,
  'RateLimit',
  '"in-flight";r=0;t=1',
]
