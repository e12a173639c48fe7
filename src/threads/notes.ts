/** Records of exchanges that have ended, as threads and gateways tell them each other. */
import type { RecentActivity } from '../compose/activity.ts'
import type { HitCount } from '../limits/hit-tally.ts'
import type { Incident } from '../limits/incidents.ts'
import type { Counted } from './batch.ts'

/** `at` is wall clock milliseconds. */
export type Note =
  | readonly [kind: 'request' | 'denied' | 'held' | 'humanDenied' | 'toolChanged', agentId: string, at: number]
  | readonly [kind: 'sent', agentId: string, at: number, host: string, bytes: number]
  | readonly [kind: 'incident', incident: Incident]
  | readonly [kind: 'hit', policy: string, rule: string | null, count: number]
  | readonly [kind: 'shadow', policy: string, rule: string, would: string]

export type Notes = readonly Counted<Note>[]

/** Carries notes to others that count the same. */
export interface Link {
  /** Notes that were made here, or came by another link. */
  send(notes: Notes): void
  /** Calls `take` with the notes of the others. */
  receive(take: (notes: Notes) => void): void
  close(): void
}

export const hitNote = ({ policy, rule, count }: HitCount): Counted<Note> => [['hit', policy, rule, count], 1]

/** Notes of one batch count as made at the same time. */
export function keyOf(note: Note): string {
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

/** Counts a note that was made elsewhere. A gateway of a later version may tell of what is not known here. */
export function count({ activity, hits, shadows, incidents }: RecentActivity, note: Note): void {
  if (note[0] === 'sent') activity.sent(note[1], { host: note[3], bytes: note[4] }, note[2])
  else if (note[0] === 'incident') incidents.note(note[1])
  else if (note[0] === 'hit') hits.note(note[1], note[2], note[3])
  else if (note[0] === 'shadow') shadows.note(note[1], note[2], note[3])
  else activity[note[0]]?.(note[1], note[2])
}
