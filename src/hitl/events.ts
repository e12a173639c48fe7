/**
 * Events of held requests and of quarantines, for reviewers' event streams, webhooks, and calls that wait for a
 * verdict. They are kept in memory, a bounded number of them. The store is the record; an event says where to look.
 */
import type { hitlEvents } from '../config/formats.ts'

export type HitlEventType = (typeof hitlEvents)[number]

export interface HitlEvent {
  /** Opaque; later events do not compare greater as text. */
  readonly id: string
  readonly type: HitlEventType
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Null: it is about an agent, not about a request. */
  readonly hitlId: string | null
  /** JSON-safe, for reviewers. */
  readonly data: Readonly<Record<string, unknown>>
}

export type HitlListener = (event: HitlEvent) => void

export interface EventLog {
  publish(type: HitlEventType, hitlId: string | null, data: Readonly<Record<string, unknown>>): void
  /**
   * Calls the listener for the kept events after `lastId`, then for every new one.
   *
   * @param lastId id of the last event seen, or `newest` of an earlier subscription; undefined: only new events
   */
  subscribe(listener: HitlListener, lastId?: string): Subscription
}

export interface Subscription {
  /** Whether events after `lastId` are no longer known, so that the list must be read again. */
  readonly missed: boolean
  /** Id of the newest event: a client without any event reconnects with this one. */
  readonly newest: string
  close(): void
}

export interface EventLogOptions {
  readonly clock: { now(): number }
  /** Most events that are kept for readers who reconnect. */
  readonly capacity: number
  /** Called for listeners that throw. */
  readonly report: (what: string, error: unknown) => void
}

export function createEventLog(options: EventLogOptions): EventLog {
  const { clock, capacity, report } = options
  // An id from before a restart must not match an event of this run.
  const run = clock.now().toString(36)
  const kept: HitlEvent[] = []
  const listeners = new Set<HitlListener>()
  let count = 0

  const tell = (listener: HitlListener, event: HitlEvent) => {
    try {
      listener(event)
    } catch (error) {
      report('a listener of review events failed', error)
    }
  }

  /** Events after that one; undefined when some are no longer known. */
  const after = (lastId: string): readonly HitlEvent[] | undefined => {
    for (let back = 0; back <= kept.length; back++) {
      if (lastId === `${run}-${count - back}`) return kept.slice(kept.length - back)
    }
    return undefined
  }

  return {
    publish(type, hitlId, data) {
      const event = { id: `${run}-${++count}`, type, at: clock.now(), hitlId, data }
      kept.push(event)
      if (kept.length > capacity) kept.shift()
      for (const listener of listeners) tell(listener, event)
    },
    subscribe(listener, lastId) {
      const newest = `${run}-${count}`
      const missing = lastId === undefined ? [] : after(lastId)
      for (const event of missing ?? []) tell(listener, event)
      listeners.add(listener)
      return { missed: missing === undefined, newest, close: () => listeners.delete(listener) }
    },
  }
}
