/** Changes of trust: what happens is summed up in memory, and written to the registry together. */
import type { Clock } from '../runtime/clock.ts'
import { type AgentRecord, type AuditEntry, type Store, StoreError } from '../storage/store.ts'
import {
  type Happened,
  isGainSpent,
  type Judgement,
  judge,
  judgeAll,
  type QuarantineRules,
  serializeTrust,
  startTrust,
  type TrustCause,
  type TrustState,
  trustStateOf,
} from './agent.ts'

/** Gateways that judge the same agent at the same time read its trust again, at most this many times. */
const maxTries = 50

interface TrustOutcome extends Pick<Judgement, 'before' | 'trust'> {
  readonly cause: Judgement['quarantine']
}

export interface TrustOptions {
  readonly store: Pick<Store, 'agents'>
  readonly clock: Clock
  readonly quarantine: QuarantineRules
  /** Called when trust or denials have quarantined an agent. */
  readonly onQuarantine?: (id: string, cause: 'trust' | 'denials') => void
  /** Called when a change of trust, which nobody waits for, could not be stored. */
  readonly onError?: (error: unknown) => void
}

/** Stores what happened to the trust of agents, soon after it happened. */
export type TrustWriter = ReturnType<typeof createTrustWriter>

export function createTrustWriter(options: TrustOptions) {
  const { clock, quarantine, onError } = options
  const book = createTrustBook(clock, quarantine)
  const write = createJudge(options, book)
  const underWay = new Map<string, Promise<void>>()
  /** Agents with changes that were noted after their write began. */
  const due = new Set<string>()

  /** At most one write of an agent is under way and one waits, however many events come. */
  function schedule(id: string): void {
    if (underWay.has(id)) {
      due.add(id)
      return
    }
    const work = write(id).catch(error => onError?.(error))
    underWay.set(
      id,
      work.then(() => {
        underWay.delete(id)
        if (due.delete(id)) schedule(id)
      }),
    )
  }

  return {
    /** Returns at once. */
    note(agent: AgentRecord, cause: TrustCause, requestId: string | null) {
      if (book.note(agent, cause, requestId)) schedule(agent.id)
    },
    /** Starts again from what is stored: earlier denials no longer count. */
    forget: (id: string) => book.forget(id),
    /** Stores what is noted, and resolves when no write is under way. */
    async flush() {
      for (const id of book.noted()) schedule(id)
      while (underWay.size > 0) await Promise.all(underWay.values())
    },
  }
}

/** Applies the noted events of an agent to its stored trust, and writes the result. */
function createJudge(options: TrustOptions, book: TrustBook): (id: string) => Promise<void> {
  const { store, clock, quarantine: rules, onQuarantine } = options

  function entryOf(subject: string, { events, requestId }: Noted, { before, trust, cause }: TrustOutcome): AuditEntry {
    const causes: Partial<Record<TrustCause, number>> = {}
    for (const { cause, times } of events) causes[cause] = (causes[cause] ?? 0) + times
    const details = { trustBefore: before, trustAfter: trust.value, causes, ...(cause !== undefined && { cause }) }
    const action = cause === undefined ? 'agent.trust' : 'agent.quarantine'
    return { at: clock.now(), actor: 'gateway', requestId, action, subject, details }
  }

  return async function write(id: string): Promise<void> {
    const noted = book.take(id)
    if (noted === undefined) return
    for (let tries = 1; ; tries++) {
      const read = await store.agents.trust(id)
      if (read === undefined) return
      const outcome = judgeAll(
        trustStateOf({ value: read.trustValue, at: read.trustAt }, read.standing),
        noted.events,
        rules,
      )
      const { trust } = outcome
      const cause = read.status === 'Active' ? outcome.quarantine : undefined
      const judged = {
        ...{
          status: cause === undefined ? read.status : 'Quarantined',
          trustValue: trust.value,
          trustAt: trust.at,
        },
        standing: serializeTrust(trust),
      } as const
      const result = await store.agents.judge(id, read, judged, entryOf(id, noted, { ...outcome, cause }))
      // Another gateway was first: its judgement counts too.
      if (result === 'stale' && tries < maxTries) continue
      if (result === 'stale') throw new StoreError('the trust of an agent changes all the time')
      if (result !== 'notFound') book.rebase(id, trust)
      if (result !== 'notFound' && cause !== undefined) onQuarantine?.(id, cause)
      return
    }
  }
}

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
export type TrustBook = ReturnType<typeof createTrustBook>

function createTrustBook(clock: Clock, rules: QuarantineRules) {
  const entries = new Map<string, TrustEntry>()

  function entryOf(agent: AgentRecord): TrustEntry {
    const known = entries.get(agent.id)
    if (known !== undefined) return known
    const entry = { trust: startTrust({ value: agent.trustValue, at: agent.trustAt }), ...nothingNoted() }
    entries.set(agent.id, entry)
    return entry
  }

  return {
    /** Notes an event; true when there is enough to write. */
    note(agent: AgentRecord, cause: TrustCause, requestId: string | null): boolean {
      const at = clock.now()
      const entry = entryOf(agent)
      if (cause === 'success' && isGainSpent(entry.trust, at)) return false
      add(entry, { cause, at, times: 1 }, rules)
      entry.requestId = requestId
      return entry.wantsQuarantine || entry.gain >= gainToWrite || entry.loss >= changeToWrite
    },
    /** Takes what is noted of this agent, to write it. Undefined when there is nothing. */
    take(id: string): Noted | undefined {
      const entry = entries.get(id)
      if (entry === undefined || entry.events.length === 0) return undefined
      const { events, requestId } = entry
      Object.assign(entry, nothingNoted())
      return { events, requestId }
    },
    /** The taken events are stored, and this is the stored trust. Later events count from there. */
    rebase(id: string, trust: TrustState) {
      const entry = entries.get(id)
      if (entry !== undefined) entry.trust = judgeAll(trust, entry.events, rules).trust
    },
    noted: (): readonly string[] => [...entries].filter(([, entry]) => entry.events.length > 0).map(([id]) => id),
    /** Starts again from what is stored. */
    forget: (id: string) => entries.delete(id),
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
