import type { Clock } from '../clock.ts'
import type { AgentRecord, Store } from '../storage/store.ts'
import { createStandingBook, type TrustChange } from './standing.ts'
import type { QuarantineRules, TrustCause } from './trust.ts'

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
  const { store, clock, onQuarantine, onError } = options
  const standings = createStandingBook(clock, options.quarantine)
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

  async function write(id: string): Promise<void> {
    const change = standings.take(id)
    if (change === undefined) return
    const { trustValue, trustAt, quarantine: cause, details } = change
    if (cause !== undefined) {
      const fields = { trustValue, trustAt, status: 'Quarantined' } as const
      const entry = entryOf(id, 'agent.quarantine', { ...change, details: { ...details, cause } })
      const result = await store.agents.update(id, fields, entry, ['Active'])
      if (typeof result === 'object') {
        onQuarantine?.(id, cause)
        return
      }
    }
    await store.agents.update(id, { trustValue, trustAt }, entryOf(id, 'agent.trust', change))
  }

  const entryOf = (
    subject: string,
    action: string,
    { requestId, details }: Pick<TrustChange, 'requestId' | 'details'>,
  ) => ({
    ...{ at: clock.now(), actor: 'gateway', requestId, action, subject, details },
  })

  return {
    note(agent, cause, requestId) {
      if (standings.note(agent, cause, requestId)) schedule(agent.id)
    },
    forget: id => standings.forget(id),
    async flush() {
      for (const id of standings.noted()) schedule(id)
      while (underWay.size > 0) await Promise.all(underWay.values())
    },
  }
}
