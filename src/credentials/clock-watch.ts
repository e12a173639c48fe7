/** Signatures of AWS that are refused because clocks differ: people are told once for each difference, not for each request. */
import { fieldValues } from '../http/headers.ts'
import type { Clock } from '../runtime/clock.ts'

/** AWS takes no signature of another time, milliseconds. */
const maxClockMs = 300_000
/** Differences that are less apart than this are one, seconds. */
const sameSeconds = 60
/** People are told at most once in this time, and again after the longer one, milliseconds. */
const [reportAgainMs, remindMs] = [60_000, 3_600_000]

/** What people were told last. */
interface ClockNote {
  seconds: number
  /** Steady milliseconds. */
  readonly at: number
  /** Requests that were refused since. */
  more: number
}

export class ClockWatch {
  readonly #clock: Pick<Clock, 'now' | 'steady'>
  /** By credential. */
  readonly #notes = new Map<string, ClockNote>()

  constructor(clock: Pick<Clock, 'now' | 'steady'>) {
    this.#clock = clock
  }

  /**
   * A signed request was refused. Returns what people must be told; undefined when clocks are not the reason, or they know.
   *
   * @param fields those of the answer
   */
  note(credential: string, fields: readonly string[], host: string): string | undefined {
    const note = this.#notes.get(credential)
    const seconds = this.#secondsAhead(fields)
    // After a right one the same wrong one is another change.
    if (seconds === undefined) {
      if (note !== undefined) note.seconds = 0
      return undefined
    }
    const at = this.#clock.steady()
    const isOther = Math.abs(seconds - (note?.seconds ?? 0)) >= sameSeconds
    if (note !== undefined && at - note.at < (isOther ? reportAgainMs : remindMs)) {
      note.more += 1
      return undefined
    }
    this.#notes.set(credential, { seconds, at, more: 0 })
    const more = note === undefined ? '' : `; since this was logged last, ${note.more} more were refused`
    return `the clock of ${host} is ${seconds} s ahead of this one${more}`
  }

  /** How far the clock of a server is ahead of that of the gateway, where that makes signatures invalid. */
  #secondsAhead(fields: readonly string[]): number | undefined {
    const [date = ''] = fieldValues(fields, 'date')
    const ms = Date.parse(date) - this.#clock.now()
    return Math.abs(ms) > maxClockMs ? Math.round(ms / 1_000) : undefined
  }
}
