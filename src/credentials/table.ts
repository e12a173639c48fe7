import { type Refusal, refuse } from '../base/refusals.ts'
import type { Clock } from '../runtime/clock.ts'
import { type CredentialState, type FreshCredential, isFresh } from './state.ts'

/** Requests of a thread that may wait for credentials at once. */
const maxWaiting = 1_024
/** A renewal ahead of the end is asked for once in this time, milliseconds. */
const askAgainMs = 5_000
/** A use is noted once in this time, milliseconds. */
const noteUseMs = 1_000
/** A value that is not sent in its last 30 s lasts a minute when it may be sent this much longer, milliseconds. */
const leastOnceMs = 30_000

/** Asks the keeper for a newer value. `refused`: version that an upstream has refused. */
export type NeedCredential = (name: string, refused: number | undefined) => Promise<CredentialState>

/** The credentials as one thread has them. */
export interface CredentialTable {
  /** Undefined when its value must not be sent any more. */
  fresh(name: string): FreshCredential | undefined
  /**
   * A value that may be sent, at once or after a renewal; or why there is none.
   *
   * @param isOnce the request is not sent again after a refusal: its value must last a minute
   */
  ready(name: string, isOnce: boolean): Refusal | undefined | Promise<Refusal | undefined>
  /** Whether there is now another value than the one that an upstream refused. */
  renew(name: string, refused: number): Promise<boolean>
  /** A request was sent with it. */
  noteUse(name: string): void
  set(state: CredentialState): void
}

export interface CredentialTableParts {
  readonly known: readonly CredentialState[]
  readonly need: NeedCredential
  /** Called at most once a second for each credential. */
  readonly onUse: (name: string) => unknown
  readonly clock: Pick<Clock, 'steady'>
}

export function createCredentialTable({ known, need, onUse, clock }: CredentialTableParts): CredentialTable {
  const states = new Map(known.map(state => [state.name, state]))
  const askedAt = new Map<string, number>()
  const usedAt = new Map<string, number>()
  let waiting = 0

  const fresh = (name: string) => {
    const state = states.get(name)
    return isFresh(state, clock.steady()) ? state : undefined
  }
  const lasts = (name: string, isOnce: boolean): boolean => {
    const state = fresh(name)
    const now = clock.steady()
    // One that is new and does not last is all that its server gives.
    return state !== undefined && (!isOnce || now < state.renewAt || state.freshUntil - now >= leastOnceMs)
  }
  /** An answer may come after a change that was made meanwhile. */
  const keep = (state: CredentialState): void => {
    if (state.version >= (states.get(state.name)?.version ?? 0)) states.set(state.name, state)
  }
  const ask = async (name: string, refused?: number): Promise<void> => {
    waiting += 1
    try {
      keep(await need(name, refused))
    } finally {
      waiting -= 1
    }
  }
  const renewAhead = (name: string): void => {
    const now = clock.steady()
    if (now - (askedAt.get(name) ?? Number.NEGATIVE_INFINITY) < askAgainMs) return
    askedAt.set(name, now)
    // The request goes on with the value that there is; the keeper tells people of a failure.
    void ask(name).catch(() => {})
  }
  return {
    fresh,
    ready(name, isOnce) {
      if (lasts(name, isOnce)) {
        if (clock.steady() >= (states.get(name)?.renewAt ?? 0)) renewAhead(name)
        return undefined
      }
      if (waiting >= maxWaiting) return refuse('busy')
      return ask(name).then(() => (lasts(name, isOnce) ? undefined : refuseMissing(name, states.get(name))))
    },
    async renew(name, refused) {
      if (waiting < maxWaiting) await ask(name, refused)
      const state = fresh(name)
      return state !== undefined && state.version !== refused
    },
    noteUse(name) {
      const now = clock.steady()
      if (now - (usedAt.get(name) ?? Number.NEGATIVE_INFINITY) < noteUseMs) return
      usedAt.set(name, now)
      onUse(name)
    },
    set: keep,
  }
}

/** What is wrong is for people: the keeper logs it, and `GET /credentials` shows it. */
function refuseMissing(name: string, state: CredentialState | undefined): Refusal {
  const members = { credential: name }
  return state?.problem?.kind === 'needed'
    ? refuse('credential_needed', undefined, { members })
    : refuse('credential_unavailable', undefined, { members })
}
