import { SlotList } from '../base/slot-list.ts'
import { sentBytes } from '../http/sent-bytes.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Exchange, TransferProgress } from './exchange.ts'

/** The exchanges in flight. It finds stalled clients, which would hold memory and connections forever. */
export type ExchangeWatch = ReturnType<typeof createWatch>

/** Minimum rate at which a client must send a body. */
export interface MinimumRate {
  /** 0 is no limit. */
  readonly bytesPerSecond: number
  /** Window over which a body is measured, without the time in which the gateway does not read, milliseconds. */
  readonly windowMs: number
}

interface WatchParts {
  readonly clock: Clock
  /** Longest time in which a client sends nothing of its body, or reads nothing of the answer, milliseconds. */
  readonly idleMs: number
  readonly pace: MinimumRate
  /** Called for a body below the minimum rate. */
  readonly onSlow: (exchange: Exchange) => void
  /** Called for an answer of which the client takes nothing. */
  readonly onStalled: (exchange: Exchange) => void
}

/** @param count its first number is the number of exchanges */
export function createWatch({ clock, idleMs, pace, onSlow, onStalled }: WatchParts, count: Int32Array) {
  const flying = new SlotList<Exchange>()

  const sendsNothing = (exchange: Exchange, progress: TransferProgress, now: number): boolean => {
    const { req, socket } = exchange
    // A paused upload waits for the upstream, whose own time limit holds.
    if (!isAwaited(exchange) || req.isPaused() || socket.bytesRead !== progress.bytesRead) {
      progress.bytesRead = socket.bytesRead
      progress.since = now
      return false
    }
    return now - progress.since > idleMs
  }

  const takesNothing = (exchange: Exchange, progress: TransferProgress, now: number): boolean => {
    const { socket, stalledSince } = exchange
    if (stalledSince === undefined) return false
    const sent = sentBytes(socket)
    if (sent === progress.bytesSent) return now - stalledSince > idleMs
    progress.bytesSent = sent
    exchange.stalledSince = now
    return false
  }

  return {
    add(exchange: Exchange) {
      flying.add(exchange)
      count[0] = flying.size
    },
    remove(exchange: Exchange) {
      flying.remove(exchange)
      count[0] = flying.size
    },
    /** The exchanges in flight for which `matches` is true. */
    underway: (matches: (exchange: Exchange) => boolean) => flying.all().filter(matches),
    /** Checks every exchange in flight. Call every second or so. */
    sweep() {
      const now = clock.steady()
      for (const exchange of flying.all()) {
        // Most exchanges are over before they are checked.
        exchange.progress ??= progressAt(now, exchange.socket.bytesRead)
        if (takesNothing(exchange, exchange.progress, now)) onStalled(exchange)
        else if (sendsNothing(exchange, exchange.progress, now)) exchange.socket.destroy()
        else if (comesTooSlowly(exchange, exchange.progress, { pace, now })) onSlow(exchange)
      }
    },
  }
}

const progressAt = (now: number, bytesRead: number): TransferProgress => ({
  ...{ bytesRead, bytesSent: 0, since: now },
  ...{ checkedAt: now, windowBytes: bytesRead, sendingMs: 0 },
})

/**
 * Whether the exchange waits for the body of its request. Once the answer has begun, both sides may speak in turn, as in
 * streams of gRPC, and the time limits for answers hold.
 */
const isAwaited = ({ req, res }: Exchange): boolean => !req.complete && !req.destroyed && !res.headersSent

interface PaceAt {
  readonly pace: MinimumRate
  readonly now: number
}

/** Whether a body under way came too slowly over the window that ends now. */
function comesTooSlowly(exchange: Exchange, progress: TransferProgress, { pace, now }: PaceAt): boolean {
  const { req, socket } = exchange
  const elapsed = now - progress.checkedAt
  progress.checkedAt = now
  // A client cannot send what the gateway does not read.
  if (pace.bytesPerSecond === 0 || !isAwaited(exchange) || req.readableFlowing !== true) return false
  progress.sendingMs += elapsed
  if (progress.sendingMs < pace.windowMs) return false
  const bytes = socket.bytesRead - progress.windowBytes
  const isSlow = bytes < (pace.bytesPerSecond * progress.sendingMs) / 1_000
  progress.windowBytes = socket.bytesRead
  progress.sendingMs = 0
  return isSlow
}
