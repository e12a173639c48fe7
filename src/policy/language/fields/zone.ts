/** Wall time in an IANA zone, for `time.*`. */
export interface WallTime {
  /** ISO 8601 with offset. */
  readonly now: string
  /** yyyy-mm-dd */
  readonly date: string
  /** HH:MM */
  readonly clock: string
  readonly hour: number
  readonly dayOfWeek: string
}

export const days: readonly string[] = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

const minute = 60_000
/** Offsets change only at full quarters of an hour of UTC. */
const quarter = 15 * minute

export function isTimeZone(name: string): boolean {
  if (name === 'UTC') return true
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined
  } catch {
    return false
  }
}

/** Reads wall time in one zone. Formatting is slow, so the offset of the last quarter hour is kept. */
export class Zone {
  readonly #format: Intl.DateTimeFormat | undefined
  #quarter = Number.NaN
  #offset = 0

  constructor(name: string) {
    const options = { timeZone: name, hourCycle: 'h23', dateStyle: 'short', timeStyle: 'medium' } as const
    this.#format = name === 'UTC' ? undefined : new Intl.DateTimeFormat('sv', options)
  }

  /** @param now milliseconds since the epoch */
  at(now: number): WallTime {
    const offset = this.#offsetAt(now)
    const local = new Date(now + offset)
    const text = local.toISOString()
    return {
      now: text.slice(0, 19) + offsetText(offset),
      date: text.slice(0, 10),
      clock: text.slice(11, 16),
      hour: local.getUTCHours(),
      dayOfWeek: days[local.getUTCDay()]!,
    }
  }

  #offsetAt(now: number): number {
    if (this.#format === undefined) return 0
    const start = Math.floor(now / quarter) * quarter
    if (start !== this.#quarter) {
      // The Swedish form is ISO 8601 with a space: 2026-01-05 10:00:00.
      const local = Date.parse(`${this.#format.format(start).replace(' ', 'T')}Z`)
      this.#offset = local - start
      this.#quarter = start
    }
    return this.#offset
  }
}

function offsetText(offset: number): string {
  const minutes = Math.abs(offset) / minute
  const pad = (value: number) => String(Math.floor(value)).padStart(2, '0')
  return offset === 0 ? 'Z' : `${offset < 0 ? '-' : '+'}${pad(minutes / 60)}:${pad(minutes % 60)}`
}
