/** What threads, and gateways of a fleet, tell each other of the activity of agents. */
import { BroadcastChannel } from 'node:worker_threads'
import { ActivityDelta } from '../limits/activity-delta.ts'
import type { Incident } from '../limits/incidents.ts'
import { createRecentActivity, type RecentActivity } from '../limits/recent-activity.ts'
import type { Board } from '../storage/postgres/board.ts'
import { createBatch } from './batch.ts'
import { FleetNotes } from './fleet-notes.ts'
import { count, hitNote, incidentNote, type NoteBatch, type NoteLink, notesOf, shadowNote } from './notes.ts'

interface SharingParts {
  readonly threads: number
  readonly channelName: string
  /** Absent when no other gateway can be on the storage. */
  readonly board: Board | undefined
}

/** Longest wait of a note when there is no other thread, milliseconds: other gateways get notes every two seconds. */
const fleetMs = 250

/**
 * Activity that is shared: a note counts at once in its own thread, milliseconds later in the other threads, and seconds
 * later in other gateways.
 *
 * @param everyMs longest wait of a note; the one of threads when absent
 */
export function shareActivity(links: readonly NoteLink[], everyMs?: number): RecentActivity {
  let isClosed = false
  const batch = createBatch<ActivityDelta | Incident>(items => {
    const notes = items.flatMap(item => (item instanceof ActivityDelta ? notesOfDelta(item) : [incidentNote(item)]))
    // Rules are counted only for requests, and are sent with the notes of requests.
    const all = [...notes, ...recent.hits.unsent().map(hitNote), ...recent.shadows.unsent().map(shadowNote)]
    // The store is closed last: its events are noted until then.
    if (!isClosed) for (const link of links) link.send(all)
  }, everyMs)
  const recent = createRecentActivity(delta => batch.add(delta))
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

function notesOfDelta(delta: ActivityDelta): NoteBatch {
  delta.end()
  return notesOf(delta)
}

/** The activity of a gateway's main thread. */
export function shareRecent({ threads, channelName, board }: SharingParts): RecentActivity {
  const links = [
    ...(threads === 1 ? [] : [linkThreads(channelName)]),
    ...(board === undefined ? [] : [linkFleet(board)]),
  ]
  if (links.length === 0) return createRecentActivity()
  return shareActivity(links, threads === 1 ? fleetMs : undefined)
}

/** @param name the same in all threads of one gateway */
export function linkThreads(name: string): NoteLink {
  const channel = new BroadcastChannel(name)
  channel.unref()
  return {
    send: notes => channel.postMessage(notes),
    receive(take) {
      // Only threads of this gateway post to the channel, and only notes.
      channel.onmessage = event => take((event as { readonly data: NoteBatch }).data)
    },
    close: () => channel.close(),
  }
}

/** Time between two looks at the board, milliseconds. */
const everyMs = 2_000

/** Carries notes to the other gateways on the same database. Notes that cannot be sent when they are due are lost. */
function linkFleet(board: Board): NoteLink {
  const waiting = new FleetNotes()
  let take: (notes: NoteBatch) => void = () => {}
  let isBusy = false

  async function exchange(): Promise<void> {
    const notes = waiting.take()
    // Only gateways of this fleet post to the board, and only notes.
    for (const text of await board.exchange(notes && JSON.stringify(notes))) take(JSON.parse(text) as NoteBatch)
  }

  function look(): void {
    if (isBusy) return
    isBusy = true
    // The feed reports that the database is away.
    exchange()
      .catch(() => {})
      .finally(() => {
        isBusy = false
      })
  }

  // The first read has the posts of the time before.
  look()
  const timer = setInterval(look, everyMs).unref()
  return {
    send: notes => waiting.add(notes),
    receive(taker) {
      take = taker
    },
    close: () => clearInterval(timer),
  }
}
