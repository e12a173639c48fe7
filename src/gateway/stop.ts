import { setTimeout as sleep } from 'node:timers/promises'
import type { Base } from './base.ts'
import type { Hitl } from './hitl.ts'
import type { Listening } from './listening.ts'
import type { SharedLimits } from './shared.ts'

export interface StopParts extends Pick<Base, 'config' | 'clock'> {
  readonly hitl: Pick<Hitl, 'stop' | 'finish'>
  /** The other threads; undefined when there is none. */
  readonly pool: { drain(limitMs: number): Promise<number> } | undefined
  readonly listening: Pick<Listening, 'drain'>
  readonly limits: Pick<SharedLimits, 'inFlight'>
}

/** Minimum time for recording an approved request when the gateway stops, milliseconds. */
const recordMs = 1_000

/**
 * Serves for System:Server:StopDelaySeconds, so that load balancers notice; then stops accepting, and lets what is under
 * way finish for DrainSeconds. Resolves with the number of requests that were cut off.
 */
export async function stopServing({ config, clock, hitl, pool, listening, limits }: StopParts): Promise<number> {
  const { StopDelaySeconds, DrainSeconds } = config.System.Server
  if (StopDelaySeconds > 0) await sleep(StopDelaySeconds * 1_000)
  const limitMs = DrainSeconds * 1_000
  const start = clock.steady()
  hitl.stop()
  // Calls that other threads pass on are still answered here.
  const there = pool?.drain(limitMs) ?? 0
  const here = listening.drain(limitMs, () => limits.inFlight[0]!)
  const cutOff = (await here) + (await there)
  const givenUp = await hitl.finish(Math.max(recordMs, limitMs - (clock.steady() - start)))
  return cutOff + givenUp
}
