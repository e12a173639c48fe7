import type { Clock } from '../runtime/clock.ts'
import type { AgentRecord } from '../storage/store.ts'
import {
  type Happened,
  isGainSpent,
  judge,
  judgeAll,
  type QuarantineRules,
  startTrust,
  type TrustCause,
  type TrustState,
} from './trust.ts'

/** Gains of successes are kept in memory up to this much trust, so that not each answer is a write. */
const gainToWrite = 0.01
/** Smaller changes are not worth a record: an agent at the bottom can be denied without end. */
const changeToWrite = 0.000_1
/** Events of an agent kept one by one. Of further ones, those with the same cause count as one moment. */
const maxEvents = 64

/** What happened to the trust of an agent and is to be written. */
export interface Noted {
  readonly events: readonly Happened[]
  /** Request of the latest event. */
  readonly requestId: string | null
}

interface TrustEntry {
  /** As far as this gateway knows: others may have judged the agent meanwhile. */
  trust: TrustState
  /** Events since the last write. */
  events: Happened[]
  gain: number
  loss: number
  wantsQuarantine: boolean
  requestId: string | null
}

/**
 * Sums up what happened to the trust of each agent until it is written, at most one entry an agent. However
 * fast events come, they take no more memory and no more writes than the store can do.
 */
export interface TrustBook {
  /** Notes an event; true when there is enough to write. */
  note(agent: AgentRecord, cause: TrustCause, requestId: string | null): boolean
  /** Takes what is noted of this agent, to write it. Undefined when there is nothing. */
  take(id: string): Noted | undefined
  /** The taken events are stored, and this is the stored trust. Later events count from there. */
  rebase(id: string, trust: TrustState): void
  /** Agents of which something is noted. */
  noted(): readonly string[]
  /** Starts again from what is stored. */
  forget(id: string): void
}

export function createTrustBook(clock: Clock, rules: QuarantineRules): TrustBook {
  const entries = new Map<string, TrustEntry>()

  function entryOf(agent: AgentRecord): TrustEntry {
    const known = entries.get(agent.id)
    if (known !== undefined) return known
    const entry = { trust: startTrust({ value: agent.trustValue, at: agent.trustAt }), ...nothingNoted() }
    entries.set(agent.id, entry)
    return entry
  }

  return {
    note(agent, cause, requestId) {
      const at = clock.now()
      const entry = entryOf(agent)
      if (cause === 'success' && isGainSpent(entry.trust, at)) return false
      add(entry, { cause, at, times: 1 }, rules)
      entry.requestId = requestId
      return entry.wantsQuarantine || entry.gain >= gainToWrite || entry.loss >= changeToWrite
    },
    take(id) {
      const entry = entries.get(id)
      if (entry === undefined || entry.events.length === 0) return undefined
      const { events, requestId } = entry
      Object.assign(entry, nothingNoted())
      return { events, requestId }
    },
    rebase(id, trust) {
      const entry = entries.get(id)
      if (entry !== undefined) entry.trust = judgeAll(trust, entry.events, rules).trust
    },
    noted: () => [...entries].filter(([, entry]) => entry.events.length > 0).map(([id]) => id),
    forget: id => entries.delete(id),
  }
}

const nothingNoted = (): Omit<TrustEntry, 'trust'> => ({
  events: [],
  gain: 0,
  loss: 0,
  wantsQuarantine: false,
  requestId: null,
})

function add(entry: TrustEntry, event: Happened, rules: QuarantineRules): void {
  const { trust, delta, quarantine } = judge(entry.trust, event.cause, event.at, rules)
  entry.trust = trust
  if (delta > 0) entry.gain += delta
  else entry.loss -= delta
  entry.wantsQuarantine ||= quarantine !== undefined
  const same = entry.events.length < maxEvents ? -1 : entry.events.findLastIndex(({ cause }) => cause === event.cause)
  if (same < 0) entry.events.push(event)
  else entry.events[same] = { ...event, times: entry.events[same]!.times + 1 }
}
