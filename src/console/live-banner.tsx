import { liveness } from './live.ts'

/** A page without a connection must not look live. */
export function LiveBanner() {
  if (liveness.value !== 'silent') return null
  return (
    <p class="banner" role="alert">
      Not live: the gateway has said nothing for 30 seconds. What is shown may be old.
    </p>
  )
}
