/**
 * Changes by time alone: pending requests expire, replays without a report become unknown, old decided requests and
 * expired grants are deleted.
 */
import { setImmediate } from 'node:timers/promises'
import type { Attempts } from './attempts.ts'
import type { HitlOptions } from './model.ts'

/** Items in one transaction: small enough that verdicts wait milliseconds for it. */
const batch = 100

export async function sweep(options: HitlOptions, attempts: Pick<Attempts, 'leases'>): Promise<void> {
  const { store, clock, settings } = options
  const now = clock.now()
  await store.hitl.lapse(now, attempts.leases())
  await inBatches(async () => (await store.hitl.expire(now, batch)).length)
  await inBatches(() => store.hitl.prune(now - settings.RetentionSeconds * 1000, batch))
  await inBatches(() => store.grants.prune(now, batch))
}

/** Repeats `step` until it finds less than a batch, and lets others run in between. */
async function inBatches(step: () => Promise<number>): Promise<void> {
  while ((await step()) === batch) await setImmediate()
}

/** Marks every attempt of this process as unknown. Returns how many. */
export async function giveUp({ store, clock }: HitlOptions, attempts: Attempts): Promise<number> {
  const { held, over } = attempts.leases()
  if (held.length + over.length === 0) return 0
  const ids = await store.hitl.lapse(clock.now(), { held: [], over: [...held, ...over] })
  return ids.length
}
