/**
 * Circuit breaker per key. The trip rule (failures within a window) is apart from the state. Every permit is
 * returned with an outcome; while half-open exactly one probe is out.
 */
export interface BreakerSettings {
  readonly failures: number
  readonly windowMs: number
  readonly openMs: number
  /** Keys kept; the least recently failed is forgotten first. */
  readonly maxKeys: number
}

/** `neutral`: nothing was learnt of the upstream (the client left, the gateway refused). */
export type Outcome = 'success' | 'failure' | 'neutral'

/** Leave to send one request; must be returned with its outcome. */
export interface Permit {
  readonly key: string
  readonly probe: boolean
}

type State =
  | { readonly kind: 'closed'; readonly failedAt: number[] }
  | { readonly kind: 'open'; readonly until: number }
  | { readonly kind: 'halfOpen' }

export interface Breaker {
  /** A permit, or the milliseconds to wait. `now` is steady milliseconds. */
  acquire(key: string, now: number): Permit | number
  release(permit: Permit, outcome: Outcome, now: number): void
  readonly size: number
}

export function createBreaker(settings: BreakerSettings): Breaker {
  // Holds only keys that failed: a healthy upstream costs one look-up in a small map.
  const states = new Map<string, State>()

  const keep = (key: string, state: State) => {
    states.delete(key)
    states.set(key, state)
    if (states.size > settings.maxKeys) states.delete(states.keys().next().value as string)
  }

  const fail = (permit: Permit, now: number) => {
    const state = states.get(permit.key)
    if (permit.probe || state?.kind === 'halfOpen') {
      keep(permit.key, { kind: 'open', until: now + settings.openMs })
      return
    }
    if (state?.kind === 'open') return
    const recent = (state?.failedAt ?? []).filter(at => at > now - settings.windowMs)
    recent.push(now)
    const tripped = recent.length >= settings.failures
    keep(permit.key, tripped ? { kind: 'open', until: now + settings.openMs } : { kind: 'closed', failedAt: recent })
  }

  return {
    acquire(key, now) {
      const state = states.get(key)
      if (state === undefined || state.kind === 'closed') return { key, probe: false }
      if (state.kind === 'halfOpen') return 1_000
      if (now < state.until) return state.until - now
      keep(key, { kind: 'halfOpen' })
      return { key, probe: true }
    },
    release(permit, outcome, now) {
      if (outcome === 'failure') fail(permit, now)
      else if (!permit.probe) return
      else if (outcome === 'success') states.delete(permit.key)
      // The probe said nothing: the next request probes again.
      else if (states.get(permit.key)?.kind === 'halfOpen') keep(permit.key, { kind: 'open', until: now })
    },
    get size() {
      return states.size
    },
  }
}
