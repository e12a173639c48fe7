import { randomUUID } from 'node:crypto'
import { hooksFor, type WebhookSubscription } from '../deliveries.ts'
import type { EventNote } from '../events.ts'
import type { Db } from '../schema.ts'
import { append } from '../tables/audit.ts'
import { countWaiting } from '../tables/waiting.ts'
import type { WriteNotes } from '../unit.ts'

/** Writes what an operation has noted, in its transaction. Nobody else writes meanwhile. */
export async function flush({ db, entries, counts, changes, subscriptions, sent }: WriteNotes): Promise<void> {
  await Promise.all(sent)
  await countWaiting(db, counts)
  if (entries.length > 0) await append(db, entries)
  for (const change of changes) if (change.table === 'events') await leave(db, change.now, subscriptions)
}

/** Stores the event for the hooks that subscribe to it. */
async function leave(db: Db, note: EventNote, subscriptions: readonly WebhookSubscription[]): Promise<void> {
  const hooks = hooksFor(note.type, subscriptions)
  if (hooks.length === 0) return
  const row = { agentId: note.data.agentId, event: randomUUID(), at: note.at, payload: JSON.stringify(note) }
  await db
    .insertInto('deliveries')
    .values(hooks.map(hook => ({ hook, ...row })))
    .execute()
}
