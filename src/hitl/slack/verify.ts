/** Whether a call over HTTP is Slack's: a signature over the bytes as they came, a time that is near, and no repetition. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { forgetOldest } from '../../base/records.ts'
import type { Clock } from '../../runtime/clock.ts'

export interface SignedCall {
  readonly signature: string | undefined
  /** Seconds since the epoch, as text. */
  readonly timestamp: string | undefined
  readonly body: Uint8Array
}

/** Seconds by which the clocks may differ. */
const tolerance = 300
/** Signatures that are remembered; more than arrive in ten minutes. */
const maxTaken = 10_000

/** Takes each call once. */
export function createSlackCheck(secret: string, { now }: Pick<Clock, 'now'>): (call: SignedCall) => boolean {
  const taken = new Set<string>()
  return ({ signature = '', timestamp = '', body }) => {
    if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now() / 1_000 - Number(timestamp)) > tolerance) return false
    const expected = `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')}`
    const [given, right] = [Buffer.from(signature), Buffer.from(expected)]
    if (given.length !== right.length || !timingSafeEqual(given, right) || taken.has(expected)) return false
    taken.add(expected)
    forgetOldest(taken, maxTaken)
    return true
  }
}
