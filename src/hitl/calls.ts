/**
 * Calls that wait for the outcome of the request they made. When the last of these calls ends unanswered, in any gateway,
 * nobody would get the outcome, and the request is withdrawn. The store knows which gateways have such calls; each gateway
 * knows its own calls.
 */

import type { Refusal } from '../base/refusals.ts'
import { type EndedCall, type HitlBrief, type Store, StoreError } from '../storage/store.ts'
import type { EventLog } from './events.ts'
import type { Person } from './model.ts'
import type { Withdrawal } from './verdict.ts'
import type { DetailView } from './view.ts'
import { isUndecided } from './wait.ts'

export interface CallTerms {
  /** The agent that calls. */
  readonly viewer: Person
  readonly requestId: string | null
  readonly ms: number
  /** Whether the answer to an undecided call has the id. The request then stays held after the call. */
  readonly staysHeld: boolean
  /** Whether the client will repeat the call when it leaves before the outcome. The request then stays held as well. */
  readonly comesAgain: boolean
  /** Hex; key with which the agent can cancel the call, unique among its calls. */
  readonly cancelKey?: string | undefined
}

type Ended = Omit<EndedCall, 'now'> & { readonly requestId: string | null }

export interface HeldCallOptions {
  readonly store: Pick<Store, 'hitl'>
  readonly clock: { now(): number }
  readonly events: Pick<EventLog, 'subscribe'>
  readonly waitForVerdict: (
    id: string,
    viewer: Person,
    wait: { readonly ms: number; readonly signal: AbortSignal },
  ) => Promise<DetailView | undefined>
  readonly withdraw: (id: string, withdrawal: Withdrawal) => Promise<HitlBrief | Refusal>
  readonly leave: (id: string, call: Ended) => Promise<void>
  readonly report: (what: string, error: unknown) => void
}

export interface Calls {
  /**
   * Resolves as `waitForVerdict` does, or when it is cancelled. `unknown`: the store cannot be read. An abort of `signal`
   * means that the call has ended.
   */
  wait(id: string, terms: CallTerms, signal: AbortSignal): Promise<DetailView | 'cancelled' | 'unknown' | undefined>
  /** Withdraws the request for which the call with this key waits, in any gateway. False when there is no such call. */
  cancel(agentId: string, cancelKey: string, requestId: string | null): Promise<boolean>
}

interface WaitingCalls {
  readonly calls: Set<CallTerms>
  cancelled: boolean
}

export function createCalls(options: HeldCallOptions): Calls {
  const { store, clock, events, waitForVerdict, withdraw, report } = options
  const waiting = new Map<string, WaitingCalls>()
  events.subscribe(event => {
    const waiter = event.type === 'withdrawn' ? waiting.get(event.hitlId ?? '') : undefined
    if (waiter !== undefined && event.data['cause'] === 'cancelled') waiter.cancelled = true
  })

  const enter = (id: string, terms: CallTerms): WaitingCalls => {
    const waiter = waiting.get(id) ?? { calls: new Set(), cancelled: false }
    waiter.calls.add(terms)
    waiting.set(id, waiter)
    return waiter
  }
  const leave = async (id: string, { viewer, requestId, cancelKey }: CallTerms, isAnswered: boolean) => {
    const isLast = !waiting.has(id)
    if (!isLast && cancelKey === undefined) return
    const ended = { agentId: viewer.id, requestId, cancelKey, isLast, isAnswered }
    await options.leave(id, ended).catch(error => report('a request that nobody waits for may still be held', error))
  }
  const find = (agentId: string, cancelKey: string): string | undefined => {
    const isMeant = ({ viewer, cancelKey: key }: CallTerms) => viewer.id === agentId && key === cancelKey
    return [...waiting].find(([, { calls }]) => [...calls].some(isMeant))?.[0]
  }

  return {
    async wait(id, given, signal) {
      // A copy: two calls with equal terms count as two.
      const terms = { ...given }
      const waiter = enter(id, terms)
      let view: DetailView | 'unknown' | undefined
      let isLeft = true
      try {
        view = await waitForVerdict(id, terms.viewer, { ms: terms.ms, signal }).catch(unlessUnavailable)
        const undecided = view === 'unknown' || isUndecided(view)
        isLeft = signal.aborted || (undecided && !terms.staysHeld)
        // If this fails, a later request gets the same outcome again. This call is answered all the same.
        if (!isLeft)
          await store.hitl.unjoin(id).catch(error => report('a held request could not be closed to others', error))
      } finally {
        waiter.calls.delete(terms)
        if (waiter.calls.size === 0) waiting.delete(id)
      }
      if (isLeft) await leave(id, terms, terms.comesAgain || !signal.aborted)
      return waiter.cancelled && view !== 'unknown' && view?.status === 'Withdrawn' ? 'cancelled' : view
    },
    async cancel(agentId, cancelKey, requestId) {
      const elsewhere = () => store.hitl.waitedFor(agentId, cancelKey, clock.now())
      const id = find(agentId, cancelKey) ?? (await elsewhere())
      if (id === undefined) return false
      await withdraw(id, { agentId, requestId, cause: 'cancelled' })
      return true
    },
  }
}

function unlessUnavailable(error: unknown): 'unknown' {
  if (error instanceof StoreError) return 'unknown'
  throw error
}
