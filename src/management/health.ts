import type { Clock } from '../clock.ts'
import { jsonReply } from '../http/respond.ts'
import type { Handlers } from './call.ts'

export interface HealthParts {
  /** Each rejects when what it looks at is not well. */
  readonly checks: readonly (() => Promise<unknown>)[]
  /** Milliseconds for all checks together. */
  readonly timeLimit: number
  readonly clock: Clock
}

/** `GET /health` (spec 4.6). Calls that come while the checks run share their outcome. */
export function healthHandlers({ checks, timeLimit, clock }: HealthParts): Handlers['open'] {
  let running: Promise<boolean> | undefined
  return {
    async getHealth() {
      const start = clock.steady()
      running ??= passInTime(checks, timeLimit).finally(() => {
        running = undefined
      })
      const healthy = await running
      return jsonReply(healthy ? 200 : 503, {
        status: healthy ? 'Healthy' : 'Unhealthy',
        healthCheckDuration: formatSpan(clock.steady() - start),
      })
    },
  }
}

/** Whether every check resolves within `timeLimit` milliseconds. Never rejects. */
async function passInTime(checks: HealthParts['checks'], timeLimit: number): Promise<boolean> {
  const late = Promise.withResolvers<false>()
  const timer = setTimeout(() => late.resolve(false), timeLimit)
  const all = Promise.all(checks.map(async check => check())).then(
    () => true,
    () => false,
  )
  const healthy = await Promise.race([all, late.promise])
  clearTimeout(timer)
  return healthy
}

/** A duration in milliseconds as `d.HH:mm:ss.fffffff` (spec 2.5). */
export function formatSpan(milliseconds: number): string {
  const ticks = Math.round(milliseconds * 10_000)
  const pad = (value: number, width: number) => String(value).padStart(width, '0')
  const seconds = Math.floor(ticks / 10_000_000)
  const hours = Math.floor(seconds / 3_600)
  return [
    `${Math.floor(hours / 24)}.${pad(hours % 24, 2)}`,
    pad(Math.floor(seconds / 60) % 60, 2),
    `${pad(seconds % 60, 2)}.${pad(ticks % 10_000_000, 7)}`,
  ].join(':')
}
