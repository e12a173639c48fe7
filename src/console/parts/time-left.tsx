import { now } from '../clock.ts'
import { spanText, timeText } from '../text.ts'

interface TimeLeftProps {
  /** ISO 8601. */
  readonly from: string
  readonly until: string
}

/** How long is left; amber in the last tenth. */
export function TimeLeft({ from, until }: TimeLeftProps) {
  const left = Date.parse(until) - now.value
  const isLate = left < (Date.parse(until) - Date.parse(from)) / 10
  return (
    <time class={isLate ? 'left late' : 'left'} dateTime={until} title={timeText(until)}>
      {left > 0 ? `${spanText(left)} left` : 'expired'}
    </time>
  )
}
