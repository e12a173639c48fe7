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

/** Makes its data when it is first read: most events have no reader, and webhooks have copies. */
class KeptEvent implements HitlEvent {
  readonly id: string
  readonly type: EventNote['type']
  readonly at: number
  readonly hitlId: string | null
  readonly #describe: Describe
  #known: { readonly note: EventNote } | { readonly data: HitlEvent['data'] }

  constructor(id: string, note: EventNote, describe: Describe) {
    this.id = id
    this.type = note.type
    this.at = note.at
    this.hitlId = note.hitlId
    this.#known = { note }
    this.#describe = describe
  }

  get data(): HitlEvent['data'] {
    if ('note' in this.#known) this.#known = { data: this.#describe(this.#known.note) }
    return this.#known.data
  }
}

interface Subscriber {
  readonly onEvent: HitlListener
  readonly onMissed: (() => void) | undefined
  /** The listener has the events up to this number, perhaps from another gateway that was ahead of this one. */
  deliveredUpTo: number
}

/** Creates a log that follows the feed of events. */
export function createEventLog(options: EventLogOptions): EventLog & FeedFollower<StoredEvent, EventHistory> {
  return new FedEventLog(options)
}

class FedEventLog implements EventLog, FeedFollower<StoredEvent, EventHistory> {
  readonly #options: EventLogOptions
  readonly #listeners = new Set<Subscriber>()
  #kept: Numbered[] = []
  #epoch: string | undefined
  /** Every event with a later number is kept. */
  #complete = 0
  #newest = 0

  constructor(options: EventLogOptions) {
    this.#options = options
  }

  load({ epoch, after, events }: EventHistory): undefined {
    if (epoch === this.#epoch && after <= this.#newest) {
      for (const event of events) if (event.seq > this.#newest) this.#pass(event)
      return
    }
    const isFirst = this.#epoch === undefined
    this.#epoch = epoch
    this.#complete = this.#newest = after
    this.#kept = []
    for (const event of events) this.#keep(event)
    for (const listener of isFirst ? [] : this.#listeners) {
      listener.deliveredUpTo = this.#newest
      listener.onMissed?.()
    }
  }

  change(_: string, stored: StoredEvent | undefined): undefined {
    if (stored !== undefined) this.#pass(stored)
  }

  subscribe(onEvent: HitlListener, lastId?: string, onMissed?: () => void): EventSubscription {
    const deliveredUpTo = lastId === undefined ? this.#newest : this.#numberOf(lastId)
    const listener = { onEvent, onMissed, deliveredUpTo: deliveredUpTo ?? this.#newest }
    for (const event of this.#kept) this.#deliver(listener, event)
    this.#listeners.add(listener)
    const newest = this.#idOf(this.#newest)
    return { missed: deliveredUpTo === undefined, newest, close: () => this.#listeners.delete(listener) }
  }

  #pass(stored: StoredEvent): void {
    const numbered = this.#keep(stored)
    for (const listener of this.#listeners) this.#deliver(listener, numbered)
  }

  #keep(stored: StoredEvent): Numbered {
    const { capacity, describe } = this.#options
    const { seq } = stored
    this.#newest = seq
    const numbered = { seq, event: new KeptEvent(this.#idOf(seq), stored, describe) }
    this.#kept.push(numbered)
    if (this.#kept.length > capacity) this.#complete = this.#kept.shift()?.seq ?? seq
    return numbered
  }

  #deliver(listener: Subscriber, { seq, event }: Numbered): void {
    if (seq <= listener.deliveredUpTo) return
    listener.deliveredUpTo = seq
    try {
      listener.onEvent(event)
    } catch (error) {
      this.#options.report('a listener of review events failed', error)
    }
  }

  #idOf(seq: number): string {
    return `${this.#epoch}-${seq}`
  }

  /** Number of an event after which all are kept. */
  #numberOf(id: string): number | undefined {
    const [, epoch, number] = /^(.+)-(\d{1,15})$/.exec(id) ?? []
    return epoch === this.#epoch && Number(number) >= this.#complete ? Number(number) : undefined
  }
}
