import type { Environment } from '../../config/environment.ts'
import type { Upstreams } from '../../gateway/upstreams.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Configuration } from '../configuration.ts'

export interface DoctorParts extends Configuration {
  readonly env: Environment
  readonly clock: Clock
  readonly upstreams: Upstreams
  /** Aborts when the time is over. */
  readonly signal: AbortSignal
}

export interface CheckResult {
  readonly level: 'ok' | 'warn' | 'fail'
  readonly text: string
  /** What to do; null when nothing is to be done, or the text says it. */
  readonly remedy: string | null
}

export const ok = (text: string): CheckResult => ({ level: 'ok', text, remedy: null })
export const warn = (text: string, remedy: string): CheckResult => ({ level: 'warn', text, remedy })
export const fail = (text: string, remedy?: string): CheckResult => ({ level: 'fail', text, remedy: remedy ?? null })
