/**
 * The only reader of time. Everything else takes a Clock, so that tests move time by hand.
 */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch: tokens, expiry, records. */
  now(): number
  /** Steady clock, milliseconds from an arbitrary start: rates, time limits, durations. Never goes back. */
  steady(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => performance.now(),
}
