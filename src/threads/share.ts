import { BroadcastChannel } from 'node:worker_threads'
import type { RecentActivity } from '../compose/activity.ts'
import { createHitTally, type HitCount } from '../limits/hit-tally.ts'
import type { Incident } from '../limits/incidents.ts'
import { type Counted, createTally } from './batch.ts'

/** Record of an exchange that has ended. `at` is wall clock milliseconds. */
type Note =
  | readonly [kind: 'request' | 'denied' | 'held' | 'humanDenied' | 'toolChanged', agentId: string, at: number]
  | readonly [kind: 'sent', agentId: string, at: number, host: string, bytes: number]
  | readonly [kind: 'incident', incident: Incident]
  | readonly [kind: 'hit', policy: string, rule: string | null, count: number]
  | readonly [kind: 'shadow', policy: string, rule: string, would: string]

/**
 * Activity that all threads know: a note is there at once in its own thread, and milliseconds later in the others.
 *
 * @param channelName the same in all threads of one gateway
 */
export function shareActivity(recent: RecentActivity, channelName: string): RecentActivity {
  const channel = new BroadcastChannel(channelName)
  channel.unref()
  // There is a hit for each request. They are counted here, and go with the note of the request itself.
  const untold = createHitTally()
  const tally = createTally<Note>(keyOf, notes => channel.postMessage([...notes, ...untold.take().map(hitNote)]))
  channel.onmessage = event => {
    // Threads of this gateway alone post to the channel, and notes alone.
    const { data } = event as { readonly data: readonly Counted<Note>[] }
    for (const [note, times] of data) for (let time = 0; time < times; time++) apply(recent, note)
  }
  const note = (one: Note): void => {
    apply(recent, one)
    tally.add(one)
  }
  const { activity, hits, shadows, incidents } = recent
  return {
    activity: {
      of: (agentId, now) => activity.of(agentId, now),
      sweep: now => activity.sweep(now),
      request: (agentId, now) => note(['request', agentId, now]),
      denied: (agentId, now) => note(['denied', agentId, now]),
      held: (agentId, now) => note(['held', agentId, now]),
      humanDenied: (agentId, now) => note(['humanDenied', agentId, now]),
      toolChanged: (agentId, now) => note(['toolChanged', agentId, now]),
      sent: (agentId, { host, bytes }, now) => note(['sent', agentId, now, host, bytes]),
      get size() {
        return activity.size
      },
    },
    hits: {
      note(policy, rule, count) {
        hits.note(policy, rule, count)
        untold.note(policy, rule, count)
      },
      of: policy => hits.of(policy),
      take: () => hits.take(),
    },
    shadows: {
      of: policy => shadows.of(policy),
      note: (policy, rule, would) => note(['shadow', policy, rule, would]),
    },
    incidents: {
      note: incident => note(['incident', incident]),
      of: agentId => incidents.of(agentId),
      denials: now => incidents.denials(now),
    },
    close() {
      tally.flush()
      channel.close()
    },
  }
}

const hitNote = ({ policy, rule, count }: HitCount): Counted<Note> => [['hit', policy, rule, count], 1]

/** Notes of one batch count as made at the same time. */
function keyOf(note: Note): string {
  switch (note[0]) {
    case 'sent':
      return `sent ${note[1]} ${note[4]} ${note[3]}`
    case 'incident':
      return `incident ${note[1].requestId}`
    case 'hit':
    case 'shadow':
      return note.join(' ')
    default:
      return `${note[0]} ${note[1]}`
  }
}

function apply({ activity, hits, shadows, incidents }: RecentActivity, note: Note): void {
  if (note[0] === 'sent') activity.sent(note[1], { host: note[3], bytes: note[4] }, note[2])
  else if (note[0] === 'incident') incidents.note(note[1])
  else if (note[0] === 'hit') hits.note(note[1], note[2], note[3])
  else if (note[0] === 'shadow') shadows.note(note[1], note[2], note[3])
  else activity[note[0]](note[1], note[2])
}
