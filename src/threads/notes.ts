/** Records of ended exchanges, as threads and gateways send them to each other. */

import type { ActivityKind } from '../limits/activity.ts'
import type { ActivityDelta } from '../limits/activity-delta.ts'
import type { Incident } from '../limits/incidents.ts'
import type { RecentActivity } from '../limits/recent-activity.ts'
import type { RuleCount } from '../limits/rule-tally.ts'
import type { Counted } from './batch.ts'

export type SentNote = readonly [kind: 'sent', agentId: string, at: number, host: string, bytes: number]

/** `at` is wall clock milliseconds. */
export type Note =
  | readonly [kind: ActivityKind, agentId: string, at: number]
  | SentNote
  | readonly [kind: 'incident', incident: Incident]
  | readonly [kind: 'hit', policy: string, rule: string | null, count: number]
  | readonly [kind: 'shadow', policy: string, rule: string | null, would: string | null]

export type NoteBatch = readonly Counted<Note>[]

/** Carries notes to other threads or gateways, which count the same activity. */
export interface NoteLink {
  /** Sends notes that were made here, or arrived by another link. */
  send(notes: NoteBatch): void
  /** Calls `take` with the notes of the others. */
  receive(take: (notes: NoteBatch) => void): void
  close(): void
}

export const incidentNote = (incident: Incident): Counted<Note> => [['incident', incident], 1]

export const shadowNote = ({ policy, rule, would, count }: RuleCount): Counted<Note> => [
  ['shadow', policy, rule, would],
  count,
]

export const hitNote = ({ policy, rule, count }: RuleCount): Counted<Note> => [['hit', policy, rule, count], 1]

const kinds: readonly ActivityKind[] = ['request', 'denied', 'held', 'humanDenied', 'toolChanged']

/** The actions of a delta get the same time, and bodies to one host the mean length. */
export function notesOf(delta: ActivityDelta): NoteBatch {
  const { agentId, at } = delta
  const notes: Counted<Note>[] = kinds.map(kind => [[kind, agentId, at], delta[kind]])
  for (const [host, { times, bytes }] of delta.sent) {
    const mean = Math.floor(bytes / Math.max(1, times))
    // Some are a byte longer: the sum is exact.
    const longer = bytes - mean * times
    notes.push(
      [['sent', agentId, at, host, mean], Math.max(1, times) - longer],
      [['sent', agentId, at, host, mean + 1], longer],
    )
  }
  return notes.filter(([, times]) => times > 0)
}

/** Counts a note of another thread or gateway. Notes of a later version may have an unknown kind. */
export function count({ activity, hits, shadows, incidents }: RecentActivity, [note, times]: Counted<Note>): void {
  if (note[0] === 'sent') activity.add(note[1], { host: note[3], bytes: note[4] }, note[2], times)
  else if (note[0] === 'incident') incidents.note(note[1])
  else if (note[0] === 'hit') hits.add({ policy: note[1], rule: note[2], would: null, count: note[3] * times })
  else if (note[0] === 'shadow') shadows.add({ policy: note[1], rule: note[2], would: note[3], count: times })
  else if (kinds.includes(note[0])) activity.add(note[1], note[0], note[2], times)
}
