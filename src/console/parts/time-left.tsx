import { now } from '../clock.ts'
import { spanText, timeText } from '../text.ts'

interface TimeLeftProps {
  /** ISO 8601. */
  readonly from: string
  readonly until: string
  readonly hasBar?: boolean
}

/** How long is left; amber in the last tenth. */
export function TimeLeft({ from, until, hasBar = false }: TimeLeftProps) {
  const left = Date.parse(until) - now.value
  const share = Math.min(1, Math.max(0, left / (Date.parse(until) - Date.parse(from))))
  return (
    <time class={share < 0.1 ? 'left late' : 'left'} dateTime={until} title={timeText(until)}>
      {left > 0 ? `${spanText(left)} left` : 'expired'}
      {hasBar && (
        <span class="bar" aria-hidden="true">
          <span style={{ transform: `scaleX(${share.toFixed(3)})` }} />
        </span>
      )}
    </time>
  )
}
