/** Lines at the top of every page: the gateway says nothing, or a tab without a session asks for its page. */
import { now } from './clock.ts'
import { liveness, silentForMs } from './live.ts'
import { askedFor } from './tabs.ts'
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

/** A tab without a session was opened, as by a link in a message: this one can show its page. */
export function TabBanner() {
  const address = askedFor.value
  if (address === undefined) return null
  const close = () => {
    askedFor.value = undefined
  }
  return (
    <p class="banner" role="status">
      A page of the console was opened in a tab that is not signed in.{' '}
      <a href={address} onClick={close}>
        Show it here
      </a>{' '}
      <button type="button" class="plain" aria-label="Dismiss" onClick={close}>
        ×
      </button>
    </p>
  )
}
