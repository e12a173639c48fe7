import { refuse } from '../base/refusals.ts'
import { formatTimespan } from '../config/duration.ts'
import { fieldValues } from '../http/headers.ts'
import { jsonReply } from '../http/respond.ts'
import { type Clock, inTime } from '../runtime/clock.ts'
import { shareFor } from '../runtime/shared-answer.ts'
import { expositionTypes, formatFor } from '../telemetry/exposition.ts'
import type { Handlers } from './call.ts'
import type { ManagementParts } from './parts.ts'

export interface HealthParts {
  /** Parts that the gateway needs. A check rejects when its part has failed. */
  readonly checks: Readonly<Record<string, () => Promise<unknown>>>
  /** Parts that the gateway can do without for a while; false when one has failed. */
  readonly watched: Readonly<Record<string, () => boolean>>
  /** Milliseconds for all checks together. */
  readonly timeLimit: number
  readonly clock: Clock
}

interface HealthReport {
  readonly parts: Readonly<Record<string, 'Healthy' | 'Unhealthy'>>
  /** Milliseconds that the checks took. */
  readonly took: number
}

/** Anybody may ask, and a check writes to the disk: an outcome holds for so long, milliseconds. */
const freshMs = 1_000

/** `GET /health` (spec 4.6). Calls share the outcome of a check that runs, or ended less than a second ago. */
export function healthHandlers({ checks, watched, timeLimit, clock }: HealthParts): Handlers['open'] {
  const ask = shareFor(freshMs, clock, async (): Promise<HealthReport> => {
    const start = clock.steady()
    const parts = await checkAll(checks, timeLimit)
    return { parts, took: clock.steady() - start }
  })
  return {
    async getHealth() {
      const { parts, took } = await ask()
      const others = Object.entries(watched).map(([name, isWell]) => [name, wordFor(isWell())])
      const healthy = Object.values(parts).every(state => state === 'Healthy')
      const report = {
        status: wordFor(healthy),
        healthCheckDuration: formatTimespan(took),
        parts: { ...parts, ...Object.fromEntries(others) },
      }
      return healthy ? jsonReply(200, report) : jsonReply(503, report, ['Retry-After', '1'])
    },
  }
}

/**
 * `GET /health/proxy`: for load balancers. It tests nothing, so it is cheap and never late. `GET /health/live`: for what restarts
 * the gateway. A restart brings no database back, so this one does not ask for it.
 */
export function proxyHealthHandlers({
  proxyRefusal,
  threadsAnswer,
}: Pick<ManagementParts, 'proxyRefusal' | 'threadsAnswer'>): Handlers['open'] {
  return {
    getLiveness() {
      return threadsAnswer()
        ? jsonReply(200, { status: wordFor(true) })
        : jsonReply(503, { status: wordFor(false) }, ['Retry-After', '1'])
    },
    getProxyHealth() {
      const why = proxyRefusal()
      return why === undefined ? jsonReply(200, { status: wordFor(true) }) : refuse(why)
    },
  }
}

/** `GET /metrics`. */
export function metricsHandlers({ metrics: { page } }: ManagementParts): Handlers['open'] {
  return {
    async getMetrics({ req }) {
      const format = formatFor(fieldValues(req.rawHeaders, 'accept'))
      return {
        status: 200,
        headers: ['Content-Type', expositionTypes[format], 'Vary', 'Accept'],
        body: await page(format),
      }
    },
  }
}

const wordFor = (isWell: boolean) => (isWell ? 'Healthy' : 'Unhealthy')

/** Which checks resolve within `timeLimit` milliseconds. Never rejects. */
async function checkAll(checks: HealthParts['checks'], timeLimit: number): Promise<HealthReport['parts']> {
  const passes = (check: () => Promise<unknown>) => {
    const begun = async () => check()
    const passed = begun().then(
      () => true,
      () => false,
    )
    return inTime(passed, timeLimit, () => false)
  }
  const entries = Object.entries(checks).map(async ([name, check]) => [name, wordFor(await passes(check))] as const)
  return Object.fromEntries(await Promise.all(entries))
}
