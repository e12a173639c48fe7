/**
 * Calls that wait for the outcome of the request they made. When the last of them ends unanswered, nobody would get the
 * outcome, and the request is withdrawn. Kept in memory: a call ends with its connection.
 */
import type { Refusal } from '../errors.ts'
import type { HitlBrief, Store } from '../storage/store.ts'
import type { Person } from './model.ts'
import type { Withdrawal } from './verdict.ts'
import type { DetailView } from './view.ts'
import { isUndecided } from './wait.ts'

export interface CallTerms {
  /** The agent that calls. */
  readonly viewer: Person
  readonly requestId: string | null
  readonly ms: number
  /** Whether an earlier call may have been told the id: its idempotency key had named the request before. */
  readonly repeatsKey: boolean
  /** Whether the answer at the end of its time names the id: then the request stays held after the call. */
  readonly staysHeld: boolean
  /** Key with which the agent can cancel the call; unique among the calls of the agent. */
  readonly cancelKey?: string | undefined
}

export interface CallOptions {
  readonly store: Pick<Store, 'hitl'>
  readonly waitForVerdict: (
    id: string,
    viewer: Person,
    wait: { readonly ms: number; readonly signal: AbortSignal },
  ) => Promise<DetailView | undefined>
  readonly withdraw: (id: string, withdrawal: Withdrawal) => Promise<HitlBrief | Refusal>
  readonly report: (what: string, error: unknown) => void
}

export interface Calls {
  /** Resolves as `waitForVerdict` does, or when it is cancelled. An abort of `signal` means that the call has ended. */
  wait(id: string, terms: CallTerms, signal: AbortSignal): Promise<DetailView | 'cancelled' | undefined>
  /** Withdraws what the call with this key waits for. False when there is no such call. */
  cancel(agentId: string, cancelKey: string, requestId: string | null): Promise<boolean>
}

/** The calls that wait for one request. */
interface Waiting {
  readonly calls: Set<CallTerms>
  /** Another call was told its id. */
  staysHeld: boolean
  cancelled: boolean
}

export function createCalls(options: CallOptions): Calls {
  const { store, waitForVerdict, withdraw, report } = options
  const waiting = new Map<string, Waiting>()

  const enter = (id: string, terms: CallTerms): Waiting => {
    const own = waiting.get(id) ?? { calls: new Set(), staysHeld: false, cancelled: false }
    own.staysHeld ||= terms.repeatsKey
    own.calls.add(terms)
    waiting.set(id, own)
    return own
  }
  const leave = (id: string, terms: CallTerms, own: Waiting): void => {
    own.calls.delete(terms)
    if (own.calls.size === 0) waiting.delete(id)
  }

  return {
    async wait(id, given, signal) {
      // A copy: two calls with equal terms count as two.
      const terms = { ...given }
      const own = enter(id, terms)
      let view: DetailView | undefined
      try {
        view = await waitForVerdict(id, terms.viewer, { ms: terms.ms, signal })
        const undecided = isUndecided(view)
        if (!signal.aborted && (!undecided || terms.staysHeld)) {
          own.staysHeld ||= undecided
          // If this fails, a later request gets the same outcome again. This call is answered all the same.
          await store.hitl.unjoin(id).catch(error => report('a held request could not be closed to others', error))
        }
      } finally {
        leave(id, terms, own)
      }
      if (signal.aborted && own.calls.size === 0 && !own.staysHeld) {
        const { viewer, requestId } = terms
        const gone = await withdraw(id, { agentId: viewer.id, requestId, cause: 'left' })
        if ('refusal' in gone && gone.status >= 500)
          report('a request that nobody waits for is still held', gone.detail)
      }
      return view?.status === 'Withdrawn' && own.cancelled ? 'cancelled' : view
    },
    async cancel(agentId, cancelKey, requestId) {
      const isMeant = ({ viewer, cancelKey: key }: CallTerms) => viewer.id === agentId && key === cancelKey
      const [found] = [...waiting].filter(([, { calls }]) => [...calls].some(isMeant))
      if (found === undefined) return false
      const [id, own] = found
      own.cancelled = true
      await withdraw(id, { agentId, requestId, cause: 'cancelled' })
      return true
    },
  }
}
