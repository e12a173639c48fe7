import { type Refusal, refuse } from '../base/refusals.ts'
import type { Clock } from '../runtime/clock.ts'
import { type CredentialState, type FreshCredential, isFresh } from './state.ts'

/** Requests of a thread that may wait for credentials at once. */
const maxWaiting = 1_024
/** A renewal ahead of the end is asked for once in this time, milliseconds. */
const askAgainMs = 5_000

/** Asks the keeper for a newer value. `refused`: version that an upstream has refused. */
export type NeedCredential = (name: string, refused: number | undefined) => Promise<CredentialState>

/** The credentials as one thread has them. */
export interface CredentialTable {
  /** Undefined when its value must not be sent any more. */
  fresh(name: string): FreshCredential | undefined
  /** A value that may be sent, at once or after a renewal; or why there is none. */
  ready(name: string): Refusal | undefined | Promise<Refusal | undefined>
  /** Whether there is now another value than the one that an upstream refused. */
  renew(name: string, refused: number): Promise<boolean>
  set(state: CredentialState): void
}

export function createCredentialTable(
  known: readonly CredentialState[],
  need: NeedCredential,
  clock: Pick<Clock, 'steady'>,
): CredentialTable {
  const states = new Map(known.map(state => [state.name, state]))
  const askedAt = new Map<string, number>()
  let waiting = 0

  const fresh = (name: string) => {
    const state = states.get(name)
    return isFresh(state, clock.steady()) ? state : undefined
  }
  const ask = async (name: string, refused?: number): Promise<void> => {
    waiting += 1
    try {
      states.set(name, await need(name, refused))
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
    ready(name) {
      const state = fresh(name)
      if (state !== undefined) {
        if (clock.steady() >= state.renewAt) renewAhead(name)
        return undefined
      }
      if (waiting >= maxWaiting) return refuse('busy')
      return ask(name).then(() => (fresh(name) === undefined ? refuseMissing(name, states.get(name)) : undefined))
    },
    async renew(name, refused) {
      if (waiting < maxWaiting) await ask(name, refused)
      const state = fresh(name)
      return state !== undefined && state.version !== refused
    },
    set(state) {
      states.set(state.name, state)
    },
  }
}

/** What is wrong is for people: the keeper logs it, and `GET /credentials` shows it. */
function refuseMissing(name: string, state: CredentialState | undefined): Refusal {
  const members = { credential: name }
  return state?.problem?.kind === 'needed'
    ? refuse('credential_needed', undefined, { members })
    : refuse('credential_unavailable', undefined, { members })
}
