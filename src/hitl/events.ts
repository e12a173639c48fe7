/**
 * Events of held requests and of agents, for reviewers' event streams, webhooks, and calls that wait for a verdict. They
 * come only from the feed of the store, so every gateway has the events of all gateways, in one order. A bounded number is
 * kept in memory. The store is the record; an event is a notice that it changed.
 */
import type { EventHistory, EventNote, StoredEvent } from '../storage/events.ts'
import type { FeedFollower } from '../storage/feed.ts'

export interface HitlEvent extends Pick<EventNote, 'type' | 'at' | 'hitlId'> {
  /** Opaque, and the same in every gateway; later events do not compare greater as text. */
  readonly id: string
  /** JSON-safe, for reviewers. Made when it is first read; throws for an event that another version has written. */
  readonly data: Readonly<Record<string, unknown>>
}

export type HitlListener = (event: HitlEvent) => void

export interface EventLog {
  /**
   * Calls the listener for the kept events after `lastId`, then for every new one.
   *
   * @param lastId id of the last event seen, or `newest` of an earlier subscription; undefined: only new events
   * @param onMissed called when events got lost on their way to this gateway
   */
  subscribe(listener: HitlListener, lastId?: string, onMissed?: () => void): EventSubscription
}

export interface EventSubscription {
  /** Whether some events after `lastId` are lost, so that the list must be read again. */
  readonly missed: boolean
  /** Id of the newest event: a client without any event reconnects with this one. */
  readonly newest: string
  close(): void
}

export interface EventLogOptions {
  /** Maximum of events that are kept for readers who reconnect. */
  readonly capacity: number
  /** The data of an event for reviewers. It may throw for an event of another version. */
  readonly describe: Describe
  /** Called for listeners that throw. */
  readonly report: (what: string, error: unknown) => void
}

type Describe = (event: EventNote) => HitlEvent['data']

interface Numbered {
  readonly seq: number
  readonly event: HitlEvent
}

interface Subscriber {
  readonly onEvent: HitlListener
  readonly onMissed: (() => void) | undefined
  /** The listener has the events up to this number, perhaps from another gateway that was ahead of this one. */
  deliveredUpTo: number
}

export function createEventLog(options: EventLogOptions): EventLog & FeedFollower<StoredEvent, EventHistory> {
  const { capacity, describe, report } = options
  const listeners = new Set<Subscriber>()
  let kept: Numbered[] = []
  let epoch: string | undefined
  /** Every event with a later number is kept. */
  let complete = 0
  let newest = 0

  const idOf = (seq: number): string => `${epoch}-${seq}`

  /** Number of an event after which all are kept. */
  function numberOf(id: string): number | undefined {
    const [, ofEpoch, number] = /^(.+)-(\d{1,15})$/.exec(id) ?? []
    return ofEpoch === epoch && Number(number) >= complete ? Number(number) : undefined
  }

  function keep(stored: StoredEvent): Numbered {
    const { seq } = stored
    newest = seq
    const numbered = { seq, event: eventOf(idOf(seq), stored, describe) }
    kept.push(numbered)
    if (kept.length > capacity) complete = kept.shift()?.seq ?? seq
    return numbered
  }

  function pass(stored: StoredEvent): undefined {
    const numbered = keep(stored)
    for (const listener of listeners) deliver(listener, numbered, report)
  }

  return {
    load(all) {
      if (all.epoch === epoch && all.after <= newest) {
        for (const event of all.events) if (event.seq > newest) pass(event)
        return undefined
      }
      const isFirst = epoch === undefined
      epoch = all.epoch
      complete = newest = all.after
      kept = []
      for (const event of all.events) keep(event)
      for (const listener of isFirst ? [] : listeners) {
        listener.deliveredUpTo = newest
        listener.onMissed?.()
      }
      return undefined
    },
    change: (_, stored) => (stored === undefined ? undefined : pass(stored)),
    subscribe(onEvent, lastId, onMissed) {
      const deliveredUpTo = lastId === undefined ? newest : numberOf(lastId)
      const listener = { onEvent, onMissed, deliveredUpTo: deliveredUpTo ?? newest }
      for (const event of kept) deliver(listener, event, report)
      listeners.add(listener)
      return { missed: deliveredUpTo === undefined, newest: idOf(newest), close: () => listeners.delete(listener) }
    },
  }
}

function deliver(listener: Subscriber, { seq, event }: Numbered, report: EventLogOptions['report']): void {
  if (seq <= listener.deliveredUpTo) return
  listener.deliveredUpTo = seq
  try {
    listener.onEvent(event)
  } catch (error) {
    report('a listener of review events failed', error)
  }
}

/** Its data is made when it is first read: most events have no reader, and webhooks have copies. */
function eventOf(id: string, note: EventNote, describe: Describe): HitlEvent {
  const { type, at, hitlId } = note
  let known: { readonly note: EventNote } | { readonly data: HitlEvent['data'] } = { note }
  return {
    ...{ id, type, at, hitlId },
    get data() {
      if ('note' in known) known = { data: describe(known.note) }
      return known.data
    },
  }
}
