/**
 * Waiting for a verdict (`Prefer: wait`, RFC 7240 section 4.3).
 */
import type { HitlBrief, HitlItem } from '../storage/store.ts'
import type { EventLog, HitlListener } from './events.ts'

/** Events after which a waiting caller is answered. */
const outcomes = new Set(['denied', 'withdrawn', 'expired', 'completed', 'failed', 'unknown'])

/** A longer timer would fire at once. */
const longestTimer = 2 ** 31 - 1

export interface Waiters {
  /**
   * Resolves when the outcome of `id` is known, `ms` have passed, `signal` aborts or the gateway stops, with the item
   * as it is then; undefined when it is gone.
   */
  wait(id: string, ms: number, signal: AbortSignal): Promise<HitlItem | undefined>
}

export interface WaiterOptions {
  readonly events: Pick<EventLog, 'subscribe'>
  /** Whether there is an outcome yet. */
  readonly brief: (id: string) => Promise<HitlBrief | undefined>
  /** The item with its body. */
  readonly read: (id: string) => Promise<HitlItem | undefined>
  /** Aborts when the gateway stops: every wait ends. */
  readonly stopping: AbortSignal
}

export function createWaiters({ events, brief, read, stopping }: WaiterOptions): Waiters {
  const waiting = new Map<string, Set<() => void>>()
  const wakeAll = () => {
    for (const wakes of waiting.values()) for (const wake of wakes) wake()
  }
  stopping.addEventListener('abort', wakeAll)
  const hear: HitlListener = ({ type, hitlId }) => {
    if (outcomes.has(type)) for (const wake of waiting.get(hitlId ?? '') ?? []) wake()
  }
  events.subscribe(hear, undefined, wakeAll)

  /** Resolves at the event, the time limit or the abort. */
  const listen = (id: string, ms: number, signal: AbortSignal) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, Math.min(ms, longestTimer))
    signal.addEventListener('abort', () => resolve())
    if (signal.aborted || stopping.aborted) resolve()
    const wakes = waiting.get(id) ?? new Set()
    waiting.set(id, wakes.add(resolve))
    const close = () => {
      clearTimeout(timer)
      wakes.delete(resolve)
      if (wakes.size === 0 && waiting.get(id) === wakes) waiting.delete(id)
    }
    return { promise, close }
  }

  return {
    async wait(id, ms, signal) {
      // Listen first, read then: a verdict in between is seen by one or the other.
      const listening = listen(id, ms, signal)
      try {
        const before = await brief(id)
        if (isUndecided(before)) await listening.promise
        return await read(id)
      } finally {
        listening.close()
      }
    },
  }
}

/** Whether no outcome for the agent is recorded yet. */
export function isUndecided(item: Pick<HitlBrief, 'status' | 'replay'> | undefined): boolean {
  return item?.status === 'Pending' || (item?.status === 'Approved' && item.replay === 'inFlight')
}
