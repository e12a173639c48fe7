import type { Clock } from '../clock.ts'
import { sentBytes } from '../http/sent-bytes.ts'
import type { Exchange } from './exchange.ts'

/** Finds clients that stand still, so that a stalled peer does not hold memory and connections for good. */
export interface Watch {
  add(exchange: Exchange): void
  remove(exchange: Exchange): void
  /** Those in flight that are meant. */
  underway(isMeant: (exchange: Exchange) => boolean): readonly Exchange[]
  /** Looks at every exchange in flight. Call every second or so. */
  sweep(): void
}

/** Slowest pace of a body that a client sends. */
export interface Pace {
  /** 0 is no limit. */
  readonly bytesPerSecond: number
  /** A body is measured over so long, not counting the time in which the gateway takes nothing, milliseconds. */
  readonly windowMs: number
}

interface WatchParts {
  readonly clock: Clock
  /** A client may send nothing of its body, or take nothing of the answer, for so long. */
  readonly idleMs: number
  readonly pace: Pace
  /** Told of a body that comes too slowly. */
  readonly onSlow: (exchange: Exchange) => void
  /** Told of an answer of which the client takes nothing. */
  readonly onStalled: (exchange: Exchange) => void
}

/** @param count its first number is how many exchanges there are */
export function createWatch({ clock, idleMs, pace, onSlow, onStalled }: WatchParts, count: Int32Array): Watch {
  // An array, and the place of each exchange in it: a Map that is filled and emptied by every request leaves chains
  // of old tables behind, which keep its exchanges alive until a full collection (22 % more CPU for each request).
  const flying: Exchange[] = []

  const sendsNothing = (exchange: Exchange, now: number): boolean => {
    const { req, socket, progress } = exchange
    // A paused upload waits for the upstream, whose own time limit holds.
    if (req.complete || req.destroyed || req.isPaused() || socket.bytesRead !== progress.bytesRead) {
      progress.bytesRead = socket.bytesRead
      progress.since = now
      return false
    }
    return now - progress.since > idleMs
  }

  const takesNothing = (exchange: Exchange, now: number): boolean => {
    const { socket, progress, stalledSince } = exchange
    if (stalledSince === undefined) return false
    const sent = sentBytes(socket)
    if (sent === progress.bytesSent) return now - stalledSince > idleMs
    progress.bytesSent = sent
    exchange.stalledSince = now
    return false
  }

  return {
    add(exchange) {
      exchange.progress.since = clock.steady()
      exchange.progress.lookedAt = exchange.progress.since
      exchange.progress.windowBytes = exchange.socket.bytesRead
      exchange.place = flying.push(exchange) - 1
      count[0] = flying.length
    },
    remove(exchange) {
      const last = flying.pop()
      count[0] = flying.length
      if (last === undefined || last === exchange) return
      flying[exchange.place] = last
      last.place = exchange.place
    },
    underway: isMeant => flying.filter(isMeant),
    sweep() {
      const now = clock.steady()
      for (const exchange of [...flying]) {
        if (takesNothing(exchange, now)) onStalled(exchange)
        else if (sendsNothing(exchange, now)) exchange.socket.destroy()
        else if (comesTooSlowly(exchange, pace, now)) onSlow(exchange)
      }
    },
  }
}

/** Looks at a body that is under way; whether it came too slowly over the window that ends now. */
function comesTooSlowly({ req, socket, progress }: Exchange, pace: Pace, now: number): boolean {
  const elapsed = now - progress.lookedAt
  progress.lookedAt = now
  // What the gateway does not read yet, or any more, cannot come.
  if (pace.bytesPerSecond === 0 || req.complete || req.readableFlowing !== true) return false
  progress.sendingMs += elapsed
  if (progress.sendingMs < pace.windowMs) return false
  const bytes = socket.bytesRead - progress.windowBytes
  const isSlow = bytes < (pace.bytesPerSecond * progress.sendingMs) / 1_000
  progress.windowBytes = socket.bytesRead
  progress.sendingMs = 0
  return isSlow
}
