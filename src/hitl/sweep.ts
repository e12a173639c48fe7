/**
 * What time does to held requests: pending ones expire, replays without a report become unknown, decided ones go.
 */
import { setImmediate } from 'node:timers/promises'
import type { HitlOptions } from './model.ts'

/** Items in one transaction: small enough that verdicts wait milliseconds for it. */
const batch = 100

export async function sweep(options: HitlOptions): Promise<void> {
  const { store, clock, settings, events } = options
  const now = clock.now()
  for (const id of await store.hitl.lapse(now)) events.publish('unknown', id, {})
  let expired: readonly string[]
  do {
    expired = await store.hitl.expire(now, batch)
    for (const id of expired) events.publish('expired', id, {})
    await setImmediate()
  } while (expired.length === batch)
  while ((await store.hitl.prune(now - settings.RetentionSeconds * 1000, batch)) === batch) await setImmediate()
}
