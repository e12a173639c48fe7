import type { Clock } from '../runtime/clock.ts'
import { type AgentRecord, type AuditEntry, type Store, StoreError } from '../storage/store.ts'
import {
  type Judgement,
  judgeAll,
  type QuarantineRules,
  serializeTrust,
  type TrustCause,
  trustStateOf,
} from './trust.ts'
import { createTrustBook, type Noted, type TrustBook } from './trust-book.ts'

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
export interface TrustWriter {
  /** Returns at once. */
  note(agent: AgentRecord, cause: TrustCause, requestId: string | null): void
  /** Starts again from what is stored: earlier denials no longer count. */
  forget(id: string): void
  /** Stores what is noted, and resolves when no write is under way. */
  flush(): Promise<void>
}

export function createTrustWriter(options: TrustOptions): TrustWriter {
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
    note(agent, cause, requestId) {
      if (book.note(agent, cause, requestId)) schedule(agent.id)
    },
    forget: id => book.forget(id),
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
