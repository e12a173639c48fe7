import { BroadcastChannel } from 'node:worker_threads'
import { createRecentActivity, type RecentActivity } from '../compose/activity.ts'
import { createHitTally } from '../limits/hit-tally.ts'
import type { Board } from '../storage/postgres/board.ts'
import { createTally } from './batch.ts'
import { linkFleet } from './link-fleet.ts'
import { count, hitNote, keyOf, type Link, type Note, type Notes } from './notes.ts'

interface Shared {
  readonly threads: number
  readonly channelName: string
  /** Absent when no other gateway can be on the storage. */
  readonly board: Board | undefined
}

/**
 * Activity that others know, too: a note is there at once in its own thread, milliseconds later in the other threads, and
 * seconds later in other gateways.
 */
export function shareActivity(recent: RecentActivity, links: readonly Link[]): RecentActivity {
  // There is a hit for each request. They are counted here, and go with the note of the request itself.
  const untold = createHitTally()
  let isClosed = false
  const tally = createTally<Note>(keyOf, notes => {
    // The store is closed last: its events are noted until then.
    if (isClosed) return
    const all = [...notes, ...untold.take().map(hitNote)]
    for (const link of links) link.send(all)
  })
  for (const link of links) {
    link.receive(notes => {
      for (const [note, times] of notes) for (let time = 0; time < times; time++) count(recent, note)
      for (const other of links) if (other !== link) other.send(notes)
    })
  }
  const note = (one: Note): void => {
    count(recent, one)
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
      isClosed = true
      for (const link of links) link.close()
    },
  }
}

/** The activity of a gateway's main thread. */
export function shareRecent({ threads, channelName, board }: Shared): RecentActivity {
  const links = [
    ...(threads === 1 ? [] : [linkThreads(channelName)]),
    ...(board === undefined ? [] : [linkFleet(board)]),
  ]
  const recent = createRecentActivity()
  return links.length === 0 ? recent : shareActivity(recent, links)
}

/** @param name the same in all threads of one gateway */
export function linkThreads(name: string): Link {
  const channel = new BroadcastChannel(name)
  channel.unref()
  return {
    send: notes => channel.postMessage(notes),
    receive(take) {
      // Threads of this gateway alone post to the channel, and notes alone.
      channel.onmessage = event => take((event as { readonly data: Notes }).data)
    },
    close: () => channel.close(),
  }
}
