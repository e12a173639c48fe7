import { BroadcastChannel } from 'node:worker_threads'
import type { Habits } from '../compose/habits.ts'
import { createBatch } from './batch.ts'

/** What can be noted of an agent. */
type Kind = 'request' | 'denied' | 'held' | 'humanDenied' | 'sent'

type Note =
  | readonly ['activity', Kind, readonly unknown[]]
  | readonly ['shadow', policy: string, rule: string, would: string]

/**
 * Habits that all threads know: what one notes is there at once, and in the others some milliseconds later.
 *
 * @param channelName the same in all threads of one gateway
 */
export function shareHabits(habits: Habits, channelName: string): Habits {
  const channel = new BroadcastChannel(channelName)
  channel.unref()
  const batch = createBatch<Note>(notes => channel.postMessage(notes))
  channel.onmessage = event => {
    for (const note of (event as { readonly data: readonly Note[] }).data) apply(habits, note)
  }
  const note = (one: Note): void => {
    apply(habits, one)
    batch.add(one)
  }
  const noting =
    (kind: Kind) =>
    (...args: readonly unknown[]): void =>
      note(['activity', kind, args])
  const { activity, shadows } = habits
  return {
    activity: {
      of: (agentId, now) => activity.of(agentId, now),
      sweep: now => activity.sweep(now),
      request: noting('request'),
      denied: noting('denied'),
      held: noting('held'),
      humanDenied: noting('humanDenied'),
      sent: noting('sent'),
      get size() {
        return activity.size
      },
    },
    shadows: {
      of: policy => shadows.of(policy),
      note: (policy, rule, would) => note(['shadow', policy, rule, would]),
    },
    close() {
      batch.flush()
      channel.close()
    },
  }
}

function apply({ activity, shadows }: Habits, note: Note): void {
  if (note[0] === 'shadow') shadows.note(note[1], note[2], note[3])
  else (activity as unknown as Record<Kind, (...args: readonly unknown[]) => void>)[note[1]](...note[2])
}
