/**
 * Circuit breaker, the same for all threads that share the table. Each agent has a circuit to each origin, which opens after
 * so many failures that this agent saw; each origin has one for all agents, which opens when the circuits of two agents have
 * opened, or after so many failures to connect. So failures that one agent provokes affect only that agent.
 *
 * Every permit is returned with an outcome. After the time of an open circuit one probe is let out; when its outcome is
 * missing for as long again, its thread may have died, and another probe is let out.
 */
import type { SharedTable, TableShape } from './shared-table.ts'

export interface BreakerSettings {
  /** Failures that open a circuit. Each takes one number in every slot of the table. */
  readonly failures: number
  readonly windowMs: number
  readonly openMs: number
}

/**
 * `failure`: the upstream answered badly, or not at all. `unreachable`: no connection could be made, for any agent.
 * `neutral`: nothing is known about the upstream (the client left, the gateway refused).
 */
export type CircuitOutcome = 'success' | 'failure' | 'unreachable' | 'neutral'

/** Permission to send one request; must be returned with its outcome. */
export interface Permit {
  readonly origin: string
  readonly agentId: string
  /** Number of the probe, if this request is one for the circuit of all agents; else 0. */
  readonly probe: number
  /** The same for the agent's own circuit. */
  readonly agentProbe: number
}

/** A clock with steady milliseconds. */
interface Steady {
  steady(): number
}

/** Times are steady milliseconds. The first is when a request may pass again: -Infinity while the circuit is closed. */
const opensField = 0
/** Number of the probe that is out; 0 or less when none is. */
const probeField = 1
/** Number of failures noted. The times of the last ones are kept in a ring. */
const countField = 2
/** In a circuit for all agents: the agent whose own circuit opened last, and the time. */
const agentField = 3
const agentOpenedField = 4
const ringField = 5

/** Maximum of numbers in the table, if enough keys fit then. */
const maxNumbers = 2 ** 18
const maxKeys = 8_192
const fewestKeys = 64

/** The table holds only circuits that saw failures: a healthy upstream costs one read of a number. */
export function breakerShape(failures: number): TableShape {
  const fields = ringField + failures
  const slots = 2 ** Math.floor(Math.log2(maxNumbers / fields))
  return { slots: Math.max(fewestKeys, Math.min(maxKeys, slots)), fields }
}

/** Retry-After while a probe is out, milliseconds. */
const probeWaitMs = 1_000

const closed = Number.NEGATIVE_INFINITY

/** A circuit opened or closed, or stays open because its probe failed. */
export interface CircuitChange {
  readonly change: 'opened' | 'closed' | 'probeFailed'
  readonly origin: string
  /** Undefined: it is the circuit of all agents. */
  readonly agentId: string | undefined
}

/** Whose circuit changed: that of the agent, or of all agents. */
type Whose = 'agent' | 'all' | undefined

export class Breaker {
  readonly #settings: BreakerSettings
  readonly #table: SharedTable
  readonly #onChange: (change: CircuitChange) => void
  #probes = 0

  /** @param onChange called for each circuit that opens or closes, and for each probe that fails */
  constructor(settings: BreakerSettings, table: SharedTable, onChange: (change: CircuitChange) => void = () => {}) {
    this.#settings = settings
    this.#table = table
    this.#onChange = onChange
  }

  /** Number of circuits with recent failures. */
  get size(): number {
    return this.#table.used
  }

  openAt(now: number): number {
    if (this.#table.used === 0) return 0
    let open = 0
    for (let slot = 0; slot < this.#table.slots; slot++) {
      if (!this.#table.isFree(slot) && this.#table.get(slot, opensField) > now) open += 1
    }
    return open
  }

  /** A permit, or the milliseconds to wait. The clock is read only for circuits that saw a failure. */
  acquire(origin: string, agentId: string, clock: Steady): Permit | number {
    const table = this.#table
    if (table.used === 0 || (table.find(origin) < 0 && table.find(agentKey(origin, agentId)) < 0)) {
      return { origin, agentId, probe: 0, agentProbe: 0 }
    }
    return table.locked(() => this.#pass(origin, agentId, clock.steady()))
  }

  release(permit: Permit, outcome: CircuitOutcome, clock: Steady): void {
    const failed = outcome === 'failure' || outcome === 'unreachable'
    if (!failed && permit.probe === 0 && permit.agentProbe === 0) return
    const now = clock.steady()
    const changed = this.#table.locked(() =>
      failed ? this.#fail(permit, outcome, now) : this.#endProbes(permit, outcome === 'success', now),
    )
    const isProbe = permit.probe > 0 || permit.agentProbe > 0
    if (failed) this.#notify(isProbe ? 'probeFailed' : 'opened', permit, changed)
    else this.#notify('closed', permit, changed)
  }

  /** Call it without holding the lock. */
  #notify(change: CircuitChange['change'], { origin, agentId }: Permit, whose: Whose): void {
    if (whose !== undefined) this.#onChange({ change, origin, agentId: whose === 'agent' ? agentId : undefined })
  }

  /** Forgets circuits whose failures no longer count. Call every second or so, in one thread. */
  sweep(now: number): void {
    if (this.#table.used === 0) return
    for (let slot = 0; slot < this.#table.slots; slot++) {
      if (!this.#table.isFree(slot)) this.#table.locked(() => this.#forget(slot, now))
    }
  }

  #pass(origin: string, agentId: string, now: number): Permit | number {
    const all = this.#table.find(origin)
    const ofAgent = this.#table.find(agentKey(origin, agentId))
    const wait = Math.max(this.#waitOf(all, now), this.#waitOf(ofAgent, now))
    if (wait > 0) return wait
    return { origin, agentId, probe: this.#takeProbe(all, now), agentProbe: this.#takeProbe(ofAgent, now) }
  }

  #isClosed(slot: number): boolean {
    return slot < 0 || this.#table.get(slot, opensField) === closed
  }

  #waitOf(slot: number, now: number): number {
    if (this.#isClosed(slot)) return 0
    const opens = this.#table.get(slot, opensField)
    if (now >= opens) return 0
    return this.#table.get(slot, probeField) > 0 ? probeWaitMs : opens - now
  }

  #takeProbe(slot: number, now: number): number {
    if (this.#isClosed(slot)) return 0
    this.#probes += 1
    // No other thread gives the same number.
    const probe = this.#probes * maxThreads + this.#table.thread + 1
    this.#table.set(slot, opensField, now + this.#settings.openMs)
    this.#table.set(slot, probeField, probe)
    return probe
  }

  #fail(permit: Permit, outcome: 'failure' | 'unreachable', now: number): Whose {
    const { origin, agentId, probe, agentProbe } = permit
    if (probe > 0 || agentProbe > 0) {
      const isAll = this.#reopen(this.#table.find(origin), probe, now)
      const isOfAgent = this.#reopen(this.#table.find(agentKey(origin, agentId)), agentProbe, now)
      if (isAll) return 'all'
      return isOfAgent ? 'agent' : undefined
    }
    if (outcome === 'unreachable') return this.#note(origin, now) ? 'all' : undefined
    if (!this.#note(agentKey(origin, agentId), now)) return undefined
    return this.#noteAgent(origin, agentId, now) ? 'all' : 'agent'
  }

  /** Notes a failure; whether the circuit opened by it. */
  #note(key: string, now: number): boolean {
    const table = this.#table
    const { failures, windowMs } = this.#settings
    const slot = this.#slotOf(key, now)
    // Requests that were under way when it opened add nothing.
    if (!this.#isClosed(slot)) return false
    const count = Math.max(0, table.get(slot, countField))
    table.set(slot, ringField + (count % failures), now)
    table.set(slot, countField, count + 1)
    const oldest = table.get(slot, ringField + ((count + 1) % failures))
    if (oldest <= now - windowMs) return false
    this.#open(slot, now)
    return true
  }

  /**
   * Notes that the circuit of an agent opened. True when it now opens for all agents, since that of another agent opened
   * within the window.
   */
  #noteAgent(origin: string, agentId: string, now: number): boolean {
    // No other key is removed for it: it could be the circuit of the agent itself.
    const slot = this.#table.claim(origin, other => this.#isOver(other, now))
    if (slot < 0 || !this.#isClosed(slot)) return false
    const agent = this.#table.hashOf(agentId)
    const isOther = this.#table.get(slot, agentField) !== agent
    const isSecond = isOther && this.#table.get(slot, agentOpenedField) > now - this.#settings.windowMs
    if (isSecond) this.#open(slot, now)
    this.#table.set(slot, agentField, agent)
    this.#table.set(slot, agentOpenedField, now)
    return isSecond
  }

  /** When every slot has a circuit with failures, one of them is forgotten. */
  #slotOf(key: string, now: number): number {
    const slot = this.#table.claim(key, other => this.#isOver(other, now))
    return slot < 0 ? this.#table.claim(key, () => true) : slot
  }

  #open(slot: number, now: number): void {
    this.#table.set(slot, opensField, now + this.#settings.openMs)
    this.#table.set(slot, probeField, 0)
  }

  /** A probe does not count once a later one is out. */
  #isOut(slot: number, probe: number): boolean {
    return slot >= 0 && probe > 0 && this.#table.get(slot, probeField) === probe
  }

  #reopen(slot: number, probe: number, now: number): boolean {
    if (!this.#isOut(slot, probe)) return false
    this.#open(slot, now)
    return true
  }

  #endProbes({ origin, agentId, probe, agentProbe }: Permit, succeeded: boolean, now: number): Whose {
    const isAll = this.#endProbe(this.#table.find(origin), probe, succeeded, now)
    const isOfAgent = this.#endProbe(this.#table.find(agentKey(origin, agentId)), agentProbe, succeeded, now)
    if (isAll) return 'all'
    return isOfAgent ? 'agent' : undefined
  }

  /** True when the circuit closed. */
  #endProbe(slot: number, probe: number, succeeded: boolean, now: number): boolean {
    if (!this.#isOut(slot, probe)) return false
    if (succeeded) this.#table.release(slot)
    else {
      // The probe had no result: the next request probes again.
      this.#table.set(slot, opensField, now)
      this.#table.set(slot, probeField, 0)
    }
    return succeeded
  }

  #forget(slot: number, now: number): void {
    if (!this.#table.isFree(slot) && this.#isOver(slot, now)) this.#table.release(slot)
  }

  /** Whether its last failure, and the end of the time for which it was open, are too long ago to count. */
  #isOver(slot: number, now: number): boolean {
    const { failures, windowMs } = this.#settings
    const last = Math.max(0, this.#table.get(slot, countField) - 1)
    const noted = Math.max(
      this.#table.get(slot, ringField + (last % failures)),
      this.#table.get(slot, agentOpenedField),
    )
    return Math.max(this.#table.get(slot, opensField), noted) <= now - windowMs
  }
}

const maxThreads = 1_024

/** Key of an agent's own circuit. An agent id has no spaces. */
const agentKey = (origin: string, agentId: string): string => `${agentId} ${origin}`
