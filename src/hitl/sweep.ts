/**
 * Changes by time alone: pending requests expire, replays without a report become unknown, old decided requests and expired
 * grants are deleted, and messages that no webhook takes. Every gateway checks; the store lets one of them do each change.
 */
import { setImmediate } from 'node:timers/promises'
import type { Dropped } from '../storage/deliveries.ts'
import type { ReplayAttempts } from './attempts.ts'
import type { HitlOptions } from './model.ts'
import { queuesOf } from './receiver.ts'

/** Items in one transaction: small enough that verdicts wait milliseconds for it. */
const batch = 100
/** Longest time that a message waits for its webhook, milliseconds. */
const deliveryMs = 86_400_000
/** Maximum of messages that wait for one webhook. */
const maxDeliveries = 10_000

export async function sweep(options: HitlOptions, attempts: Pick<ReplayAttempts, 'leases'>): Promise<void> {
  const { store, clock, settings } = options
  const now = clock.now()
  const ofGateway = attemptsHere(options, attempts)
  const [decided, delivered] = [now - settings.RetentionSeconds * 1_000, now - deliveryMs]
  const due = await store.hitl.due({ now, decided, delivered, max: maxDeliveries })
  if (due.lapse || ofGateway.over.length > 0)
    await inBatches(async () => (await store.hitl.lapse(now, ofGateway, batch)).length)
  if (due.expire) await inBatches(async () => (await store.hitl.expire(now, batch)).length)
  // A request that has just expired or lapsed may be old enough to be deleted, too.
  if (due.prune || due.lapse || due.expire) await inBatches(() => store.hitl.prune(decided, batch))
  if (due.grants) await inBatches(() => store.grants.prune(now, batch))
  if (due.deliveries) reportDropped(options, await store.deliveries.prune(delivered, maxDeliveries))
}

const attemptsHere = ({ member }: HitlOptions, attempts: Pick<ReplayAttempts, 'leases'>) => ({
  owner: member.id,
  ...attempts.leases(),
})

function reportDropped({ settings, report, onFull }: HitlOptions, dropped: readonly Dropped[]): void {
  const queues = queuesOf(settings)
  for (const [hook, some] of Map.groupBy(dropped, ({ hook }) => hook)) {
    const who = queues.find(({ name }) => name === hook)?.label ?? 'a receiver that this gateway does not have'
    const count = some.reduce((sum, { count }) => sum + count, 0)
    report(`${who} did not take its messages in time: ${count} were dropped`, undefined)
  }
  for (const { agentId, isOld } of dropped) if (!isOld) onFull('webhook_messages', agentId, null)
}

/** Repeats `step` until it finds less than a batch, and yields to the event loop in between. */
async function inBatches(step: () => Promise<number>): Promise<void> {
  while ((await step()) >= batch) await setImmediate()
}

/** Marks every attempt of this process as unknown. Returns how many. */
export async function giveUp(options: HitlOptions, attempts: ReplayAttempts): Promise<number> {
  const { owner, held, over } = attemptsHere(options, attempts)
  if (held.length + over.length === 0) return 0
  const ofGateway = { owner, held: [], over: [...held, ...over] }
  return (await options.store.hitl.lapse(options.clock.now(), ofGateway, batch)).length
}
