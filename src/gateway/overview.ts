import { readsUsage } from '../config/budgets.ts'
import type { RecentActivity } from '../limits/recent-activity.ts'
import type { OverviewReading } from '../management/parts.ts'
import { createHistory, type Gauges, type TimeRange } from '../telemetry/history.ts'
import type { Base } from './base.ts'
import type { Hitl } from './hitl.ts'
import type { SharedLimits } from './shared.ts'
import type { Telemetry } from './telemetry.ts'

export interface OverviewParts extends Pick<Base, 'config' | 'clock'> {
  readonly telemetry: Pick<Telemetry, 'totals'>
  readonly limits: Pick<SharedLimits, 'inFlightInAll'> & { readonly breaker: Pick<SharedLimits['breaker'], 'openAt'> }
  readonly hitl: { readonly queue: Pick<Hitl['queue'], 'waiting'> }
  readonly recent: Pick<RecentActivity, 'incidents'>
}

export type Overview = ReturnType<typeof createOverview>

/** The store is asked this often at most, milliseconds. */
const askMs = 5_000

export function createOverview({ config, clock, telemetry, limits, hitl, recent }: OverviewParts) {
  const history = createHistory()
  const isMetered = config.Metering.Usage || readsUsage(config)
  const currency = isMetered ? config.Metering.Currency : null
  let waiting = { pending: 0, oldestSeconds: 0 }
  let asked = Number.NEGATIVE_INFINITY

  const gauges = (): Gauges => ({
    ...waiting,
    circuitsOpen: limits.breaker.openAt(clock.steady()),
    inFlight: limits.inFlightInAll(),
  })
  const ask = async () => {
    const { count, since } = await hitl.queue.waiting()
    const oldestSeconds = since === undefined ? 0 : Math.max(0, Math.floor((clock.now() - since) / 1_000))
    waiting = { pending: count, oldestSeconds }
  }

  return {
    /** Call about every second. Rejects when the store cannot be read. */
    async sample() {
      history.sample(clock.now(), telemetry.totals, gauges())
      if (clock.steady() - asked < askMs) return
      asked = clock.steady()
      await ask()
    },
    /** Rejects when the store cannot be read. */
    async read(range: TimeRange): Promise<OverviewReading> {
      await ask()
      return { plots: history.plots(range), currency, now: gauges(), denials: recent.incidents.denials(clock.now()) }
    },
  }
}
