import type { Clock } from '../clock.ts'
import type { AgentRecord } from '../storage/store.ts'
import {
  isGainSpent,
  judge,
  type QuarantineRules,
  type Standing,
  startStanding,
  type TrustCause,
  trustNow,
} from './trust.ts'

/** Gains of successes are kept in memory up to this much trust, so that not each answer is a write. */
const gainToWrite = 0.01
/** Smaller changes are not worth a record: an agent at the bottom can be denied without end. */
const changeToWrite = 0.000_1

/** A change of trust that is ready to be written. */
export interface TrustChange {
  readonly trustValue: number
  readonly trustAt: number
  readonly quarantine: 'trust' | 'denials' | undefined
  /** For the audit trail: live trust before and after, and how often each cause came. */
  readonly details: Readonly<Record<string, unknown>>
  /** Request of the latest event. */
  readonly requestId: string | null
}

interface Entry {
  standing: Standing
  /** Events since the last write. */
  causes: Map<TrustCause, number>
  /** Live trust just before the first of them. */
  before: number
  gain: number
  loss: number
  quarantine: 'trust' | 'denials' | undefined
  requestId: string | null
}

/**
 * Sums up what happened to the trust of each agent until it is written, at most one entry an agent. However
 * fast events come, they take no more memory and no more writes than the store can do.
 */
export interface StandingBook {
  /** Notes an event; true when there is enough to write. */
  note(agent: AgentRecord, cause: TrustCause, requestId: string | null): boolean
  /** Takes what is noted of this agent, to write it. Undefined when there is nothing. */
  take(id: string): TrustChange | undefined
  /** Agents of which something is noted. */
  noted(): readonly string[]
  /** Starts again from what is stored: earlier denials no longer count. */
  forget(id: string): void
}

export function createStandingBook(clock: Clock, rules: QuarantineRules): StandingBook {
  const entries = new Map<string, Entry>()

  function entryOf(agent: AgentRecord): Entry {
    const known = entries.get(agent.id)
    if (known !== undefined) return known
    const standing = startStanding({ value: agent.trustValue, at: agent.trustAt })
    const entry: Entry = { standing, before: standing.value, ...nothingNoted() }
    entries.set(agent.id, entry)
    return entry
  }

  return {
    note(agent, cause, requestId) {
      const now = clock.now()
      const entry = entryOf(agent)
      if (cause === 'success' && isGainSpent(entry.standing, now)) return false
      add(entry, cause, now, rules)
      entry.requestId = requestId
      return entry.quarantine !== undefined || entry.gain >= gainToWrite || entry.loss >= changeToWrite
    },
    take(id) {
      const entry = entries.get(id)
      if (entry === undefined || entry.causes.size === 0) return undefined
      const { standing, before, quarantine, requestId } = entry
      const details = { trustBefore: before, trustAfter: standing.value, causes: Object.fromEntries(entry.causes) }
      Object.assign(entry, nothingNoted())
      return { trustValue: standing.value, trustAt: standing.at, quarantine, details, requestId }
    },
    noted: () => [...entries].filter(([, entry]) => entry.causes.size > 0).map(([id]) => id),
    forget: id => entries.delete(id),
  }
}

const nothingNoted = (): Omit<Entry, 'standing' | 'before'> => ({
  causes: new Map(),
  gain: 0,
  loss: 0,
  quarantine: undefined,
  requestId: null,
})

function add(entry: Entry, cause: TrustCause, now: number, rules: QuarantineRules): void {
  if (entry.causes.size === 0) entry.before = trustNow(entry.standing, now)
  const judgement = judge(entry.standing, cause, now, rules)
  entry.standing = judgement.standing
  entry.causes.set(cause, (entry.causes.get(cause) ?? 0) + 1)
  if (judgement.delta > 0) entry.gain += judgement.delta
  else entry.loss -= judgement.delta
  entry.quarantine ??= judgement.quarantine
}
