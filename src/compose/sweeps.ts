import type { Registry } from '../agents/registry.ts'
import type { PolicyBook } from '../policies/book.ts'
import type { Base } from './base.ts'
import type { DataPlane } from './data-plane.ts'
import type { Hitl } from './hitl.ts'
import type { SharedLimits } from './shared.ts'
import type { Telemetry } from './telemetry.ts'

export interface SweepParts extends ResyncParts, Pick<Base, 'clock'> {
  readonly dataPlane: Pick<DataPlane, 'sweep'>
  readonly hitl: Pick<Hitl, 'sweep'>
  readonly telemetry: Pick<Telemetry, 'sample'> | undefined
  readonly limits: Pick<SharedLimits, 'breaker'>
}

/** Time between two sweeps, milliseconds. */
const sweepMs = 1_000

/** Starts the sweeps of the main thread. */
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

interface ResyncParts extends Pick<Base, 'store' | 'report'> {
  readonly registry: Pick<Registry, 'reload'>
  readonly book: Pick<PolicyBook, 'restore'>
}

/**
 * Reads agents and policies again after a write whose caller could not be told whether it was kept: a revocation that
 * was answered with 503 and is in the store holds from then on. Call the result every second or so.
 */
function createResync({ store, registry, book, report }: ResyncParts): () => Promise<void> {
  let settled = 0
  let running = false
  return async () => {
    const doubts = store.doubts()
    if (running || doubts === settled) return
    running = true
    try {
      await registry.reload()
      await book.restore()
      settled = doubts
    } catch (error) {
      report('agents and policies could not be read again after a write in doubt', error)
    } finally {
      running = false
    }
  }
}
