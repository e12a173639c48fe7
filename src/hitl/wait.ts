/**
 * Waiting for a verdict (`Prefer: wait`, RFC 7240 section 4.3).
 */
import type { HitlBrief } from '../storage/store.ts'
import type { EventLog, HitlListener } from './events.ts'

/** Events after which a waiting caller is answered. */
const outcomes = new Set(['denied', 'withdrawn', 'expired', 'completed', 'failed', 'unknown'])

/** Node fires longer timers at once. */
const longestTimer = 2 ** 31 - 1

export interface WaitLimits {
  readonly ms: number
  readonly signal: AbortSignal
}

export interface WaiterOptions {
  readonly events: Pick<EventLog, 'subscribe'>
  /** Aborts when the gateway stops: every wait ends. */
  readonly stopping: AbortSignal
}

export function createWaiters({ events, stopping }: WaiterOptions) {
  const waiting = new Map<string, Set<() => void>>()
  const wakeAll = () => {
    for (const wakes of waiting.values()) for (const wake of wakes) wake()
  }
  stopping.addEventListener('abort', wakeAll)
  const onEvent: HitlListener = ({ type, hitlId }) => {
    if (outcomes.has(type)) for (const wake of waiting.get(hitlId ?? '') ?? []) wake()
  }
  events.subscribe(onEvent, undefined, wakeAll)

  /** Resolves at the event, after `ms`, or at the abort. */
  const listen = (id: string, { ms, signal }: WaitLimits) => {
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
    /**
     * Resolves when the outcome of `id` is known, `ms` have passed, `signal` aborts or the gateway stops.
     *
     * @param isOpen reads whether there is no outcome yet
     */
    async wait(id: string, isOpen: () => Promise<boolean>, limits: WaitLimits) {
      // Listen first, then read: a verdict in between reaches at least one of them.
      const listening = listen(id, limits)
      try {
        if (await isOpen()) await listening.promise
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
