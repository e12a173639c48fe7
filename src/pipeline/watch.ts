import type { Clock } from '../clock.ts'
import type { Exchange } from './exchange.ts'

/** Cuts off clients that stand still, so that a stalled peer does not hold memory and connections for good. */
export interface Watch {
  add(exchange: Exchange): void
  remove(exchange: Exchange): void
  /** Looks at every exchange in flight. Call every second or so. */
  sweep(): void
  readonly size: number
}

/** What a client had sent when it was last looked at. */
interface Progress {
  bytesRead: number
  since: number
}

/** @param idleMs a client that neither sends a body that is waited for nor takes what is there is cut off after this */
export function createWatch(clock: Clock, idleMs: number): Watch {
  const flying = new Map<Exchange, Progress>()

  const sendsNothing = (exchange: Exchange, progress: Progress, now: number): boolean => {
    const { req, socket } = exchange
    // A paused upload waits for the upstream, whose own time limit holds.
    if (req.complete || req.destroyed || req.isPaused() || socket.bytesRead !== progress.bytesRead) {
      progress.bytesRead = socket.bytesRead
      progress.since = now
      return false
    }
    return now - progress.since > idleMs
  }

  return {
    add(exchange) {
      flying.set(exchange, { bytesRead: 0, since: clock.steady() })
    },
    remove(exchange) {
      flying.delete(exchange)
    },
    sweep() {
      const now = clock.steady()
      for (const [exchange, progress] of flying) {
        const takesNothing = now - (exchange.stalledSince ?? now) > idleMs
        if (takesNothing || sendsNothing(exchange, progress, now)) exchange.socket.destroy()
      }
    },
    get size() {
      return flying.size
    },
  }
}
