import type { Clock } from '../clock.ts'
import type { DataPlane } from './data-plane.ts'
import type { Hitl } from './hitl.ts'
import { createResync, type ResyncParts } from './resync.ts'
import type { SharedLimits } from './shared.ts'
import type { Telemetry } from './telemetry.ts'

export interface SweepParts extends ResyncParts {
  readonly clock: Clock
  readonly dataPlane: Pick<DataPlane, 'sweep'>
  readonly hitl: Pick<Hitl, 'sweep'>
  readonly telemetry: Pick<Telemetry, 'sample'> | undefined
  readonly limits: Pick<SharedLimits, 'breaker'>
}

/** How often the parts tidy up behind themselves, milliseconds. */
const sweepMs = 1_000

/** Starts the work of every second in the main thread. */
export function startSweeps(parts: SweepParts): NodeJS.Timeout {
  const { clock, dataPlane, hitl, telemetry, limits, report } = parts
  const resync = createResync(parts)
  return setInterval(() => {
    void resync()
    dataPlane.sweep()
    telemetry?.sample()
    limits.breaker.sweep(clock.steady())
    hitl.sweep().catch(error => report('expired reviews could not be removed', error))
  }, sweepMs)
}
