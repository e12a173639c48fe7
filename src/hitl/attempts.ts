/**
 * Attempts of this process to send approved requests. Their leases run on the steady clock: a jump of the wall clock
 * must not let a second attempt begin. The wall clock counts for attempts that a former process has left behind.
 */
import type { Clock } from '../runtime/clock.ts'
import type { GatewayAttempts } from '../storage/store.ts'

export interface AttemptLease {
  /** Steady milliseconds: from then on another attempt may be made. */
  readonly until: number
  /** Steady milliseconds: half of the lease. From then on the attempt must not begin to send. */
  readonly sendBefore: number
  /**
   * Whether the attempt must not begin to send any more. Check it in the same turn of the event loop in which the first byte
   * is written. The steady clock stops while a virtual machine is paused, and the wall clock may go back, so the first clock
   * that is past the limit counts.
   */
  isLate(): boolean
  /** Aborts when the gateway stops and no longer waits. The outcome is then recorded as unknown. */
  readonly abandoned: AbortSignal
  /** Holds the lease until all work that was passed here has ended. */
  during<T>(work: Promise<T>): Promise<T>
}

export type ReplayAttempts = ReturnType<typeof createAttempts>

interface Held {
  readonly id: string
  readonly until: number
  readonly stop: AbortController
}

export function createAttempts(clock: Clock, leaseMs: number) {
  const held = new Set<Held>()
  const working = new Set<Promise<unknown>>()

  function follow<T>(work: Promise<T>): Promise<T> {
    // The caller handles a rejection; here it only ends the work.
    const tracked: Promise<unknown> = work.then(
      () => working.delete(tracked),
      () => working.delete(tracked),
    )
    working.add(tracked)
    return work
  }

  return {
    /** Follows work that holds no lease. */
    follow,
    begin(id: string): AttemptLease {
      const lease = { id, until: clock.steady() + leaseMs, stop: new AbortController() }
      const sendBefore = lease.until - leaseMs / 2
      const sendBeforeWall = clock.now() + leaseMs / 2
      let works = 0
      held.add(lease)
      const ended = (): void => {
        works -= 1
        if (works === 0) held.delete(lease)
      }
      return {
        ...{ until: lease.until, sendBefore },
        isLate: () => lease.stop.signal.aborted || clock.steady() >= sendBefore || clock.now() >= sendBeforeWall,
        abandoned: lease.stop.signal,
        during(work) {
          works += 1
          work.then(ended, ended)
          return follow(work)
        },
      }
    },
    /** Ids of requests: those with a lease that holds, and those with a lease that is over. */
    leases(): Omit<GatewayAttempts, 'owner'> {
      const now = clock.steady()
      const running = new Set([...held].filter(({ until }) => until > now).map(({ id }) => id))
      const over = new Set([...held].map(({ id }) => id).filter(id => !running.has(id)))
      return { held: [...running], over: [...over] }
    },
    /** Resolves when no work is under way. */
    async idle() {
      while (working.size > 0) await Promise.all(working)
    },
    /** Ends every attempt. */
    abort() {
      for (const { stop } of held) stop.abort()
    },
  }
}
