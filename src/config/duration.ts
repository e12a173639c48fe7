const day = 86_400_000
const hour = 3_600_000
const minute = 60_000
const second = 1_000

const pattern = /^(?:(\d{1,8})\.)?(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,7}))?$/

/**
 * Reads `hh:mm:ss`, `d.hh:mm:ss` and either with a fraction (spec.md 5.6).
 *
 * @returns milliseconds; undefined when the text is no time span
 */
export function parseTimespan(text: string): number | undefined {
  const match = pattern.exec(text)
  if (match === null) return undefined
  const [, days = '0', hours, minutes, seconds, fraction = '0'] = match
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined
  return (
    Number(days) * day +
    Number(hours) * hour +
    Number(minutes) * minute +
    Number(seconds) * second +
    Math.round(Number(`0.${fraction}`) * second)
  )
}

/**
 * Writes a duration as `d.HH:mm:ss.fffffff`, with ticks of 100 ns (spec.md 2.5).
 *
 * @param milliseconds zero or more; fractions count
 */
export function formatTimespan(milliseconds: number): string {
  const ticks = Math.round((milliseconds % second) * 10_000)
  const whole = Math.floor(milliseconds / second) * second + Math.floor(ticks / 10_000_000) * second
  const clock = [(whole % day) / hour, (whole % hour) / minute, (whole % minute) / second]
  const digits = clock.map(part => String(Math.floor(part)).padStart(2, '0')).join(':')
  return `${Math.floor(whole / day)}.${digits}.${String(ticks % 10_000_000).padStart(7, '0')}`
}

/** Writes a time span the way settings show it: `hh:mm:ss`, with `d.` in front from one day on. */
export function formatSetting(milliseconds: number): string {
  const text = formatTimespan(milliseconds).replace(/\.0{7}$/, '')
  return milliseconds < day ? text.slice(2) : text
}
