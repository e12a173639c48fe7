import { asError } from '../../base/as-error.ts'
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

/** What a certificate seems to be that is judged by a wrong clock. */
export const clockOf = (now: number): string =>
  `If it should be valid now, set the clock of this machine, which says ${new Date(now).toISOString()}.`

/** The certificate of another, by the code of OpenSSL. */
const dates: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
}

/** A service does not do what it is for. @param remedy what to do when its certificate is not the reason */
export function failOf(text: string, problem: unknown, remedy: string, now: number): CheckResult {
  const error = asError(problem)
  const { code, message } = error.cause === undefined ? error : asError(error.cause)
  const date = dates[code ?? '']
  if (date !== undefined) return fail(`${text}: ${date}`, `Have it renewed there. ${clockOf(now)}`)
  // What several addresses of a name refused has a code alone.
  const why = message === '' ? code : message
  return fail(`${text}: ${typeof code === 'number' ? `status ${code}` : why}`, remedy)
}
