import type { Clock } from '../runtime/clock.ts'

/** Events that callers cause are logged once in this time for each key, milliseconds. */
const intervalMs = 60_000
/** Keys that are remembered; events of further keys in the same minute are not logged. */
const maxKeys = 1_000
/** Keys of one owner that are remembered, so that an agent which chooses them cannot hide the events of others. */
const maxKeysOfOwner = 20

/**
 * Whether an event is the first with its key in a minute, so that callers cannot fill the log. With an owner, the key is one of
 * the owner's, who has few.
 */
export function createOncePerMinute(clock: Clock): (key: string, owner?: string) => boolean {
  let reported = new Set<string>()
  let ofOwner = new Map<string, number>()
  let since = Number.NEGATIVE_INFINITY
  return (name, owner) => {
    const now = clock.steady()
    if (now - since >= intervalMs) {
      reported = new Set()
      ofOwner = new Map()
      since = now
    }
    const key = owner === undefined ? name : `${owner} ${name}`
    if (reported.size >= maxKeys || reported.has(key)) return false
    if (owner !== undefined) {
      const count = ofOwner.get(owner) ?? 0
      if (count >= maxKeysOfOwner) return false
      ofOwner.set(owner, count + 1)
    }
    reported.add(key)
    return true
  }
}
