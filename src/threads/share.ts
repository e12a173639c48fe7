import { BroadcastChannel } from 'node:worker_threads'
import type { Incident } from '../limits/incidents.ts'
import { createRecentActivity, type RecentActivity } from '../limits/recent-activity.ts'
import { Untold } from '../limits/untold.ts'
import type { Board } from '../storage/postgres/board.ts'
import { createBatch } from './batch.ts'
import { linkFleet } from './link-fleet.ts'
import { count, hitNote, incidentNote, type Link, type Notes, notesOf, shadowNote } from './notes.ts'

interface Shared {
  readonly threads: number
  readonly channelName: string
  /** Absent when no other gateway can be on the storage. */
  readonly board: Board | undefined
}

/** Longest wait of a note that no other thread waits for, milliseconds: other gateways hear of it every two seconds. */
const fleetMs = 250

/**
 * Activity that others know, too: a note is there at once in its own thread, milliseconds later in the other threads, and
 * seconds later in other gateways.
 *
 * @param everyMs longest wait of a note, when it is not that of threads
 */
export function shareActivity(links: readonly Link[], everyMs?: number): RecentActivity {
  let isClosed = false
  const batch = createBatch<Untold | Incident>(items => {
    const notes = items.flatMap(item => (item instanceof Untold ? told(item) : [incidentNote(item)]))
    // Rules are counted for requests alone, and go with the notes of those.
    const all = [...notes, ...recent.hits.untold().map(hitNote), ...recent.shadows.untold().map(shadowNote)]
    // The store is closed last: its events are noted until then.
    if (!isClosed) for (const link of links) link.send(all)
  }, everyMs)
  const recent = createRecentActivity(untold => batch.add(untold))
  for (const link of links) {
    link.receive(notes => {
      for (const note of notes) count(recent, note)
      for (const other of links) if (other !== link) other.send(notes)
    })
  }
  const { incidents } = recent
  return {
    ...recent,
    incidents: {
      note(incident) {
        const kept = incidents.note(incident)
        batch.add(kept)
        return kept
      },
      of: agentId => incidents.of(agentId),
      denials: now => incidents.denials(now),
    },
    close() {
      batch.flush()
      isClosed = true
      for (const link of links) link.close()
    },
  }
}

function told(untold: Untold): Notes {
  untold.end()
  return notesOf(untold)
}

/** The activity of a gateway's main thread. */
export function shareRecent({ threads, channelName, board }: Shared): RecentActivity {
  const links = [
    ...(threads === 1 ? [] : [linkThreads(channelName)]),
    ...(board === undefined ? [] : [linkFleet(board)]),
  ]
  if (links.length === 0) return createRecentActivity()
  return shareActivity(links, threads === 1 ? fleetMs : undefined)
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
