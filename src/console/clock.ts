import { signal } from '@preact/signals'

/** The time, once a second, for what counts down. Milliseconds since the epoch. */
export const now = signal(Date.now())

setInterval(() => {
  now.value = Date.now()
}, 1_000)
