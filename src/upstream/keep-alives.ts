import { LRUCache } from '../runtime/lru.ts'
import type { CarrierSettings } from './settings.ts'

/** Connections are kept for this share of the idle time after which the upstream closed one. */
const share = 0.75
/** An upstream that restarts closes connections of any age: shorter idle times say nothing, milliseconds. */
const shortestMs = 100
/** How long an observation counts, milliseconds. */
const validMs = 600_000
const maxOrigins = 1_000

interface Learnt {
  readonly keepAliveMs: number
  /** Steady milliseconds. */
  readonly until: number
}

/** How long upstreams keep idle connections, learnt from those that they closed. */
export class KeepAlives {
  readonly #learnt = new LRUCache<string, Learnt>({ max: maxOrigins })

  /** An upstream closed a connection that had been idle for `idleMs`. `now` is steady milliseconds. */
  note(origin: string, idleMs: number, now: number): void {
    if (idleMs < shortestMs) return
    const keepAliveMs = Math.min(idleMs * share, this.of(origin, now))
    this.#learnt.set(origin, { keepAliveMs, until: now + validMs })
  }

  /** Longest time that an idle connection to the origin is kept, milliseconds; infinity when nothing is known. */
  of(origin: string, now: number): number {
    const learnt = this.#learnt.get(origin)
    return learnt !== undefined && learnt.until > now ? learnt.keepAliveMs : Number.POSITIVE_INFINITY
  }

  /** The settings for a connection. An upstream that closed idle connections early is not given the time to do it again. */
  shorten(settings: CarrierSettings, origin: string, now: number): CarrierSettings {
    const max = this.of(origin, now)
    return max >= settings.keepAliveMs ? settings : { ...settings, keepAliveMs: max, maxKeepAliveMs: max }
  }
}
