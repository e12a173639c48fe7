import { now } from './clock.ts'
import { liveness, silentForMs } from './live.ts'
import { spanText } from './text.ts'

/** A page without a connection must not look live. */
export function LiveBanner() {
  if (liveness.value !== 'silent') return null
  // Read once a second.
  const span = now.value > 0 ? spanText(silentForMs()) : ''
  return (
    <p class="banner">
      <span role="alert">Not live: what is shown may be old.</span> The gateway has said nothing for {span}.
    </p>
  )
}
