import { askedFor } from './tabs.ts'

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
