import { type Refusal, refuse } from '../base/refusals.ts'
import type { Clock } from '../runtime/clock.ts'
import { type CredentialKey, parseKey } from '../storage/credentials.ts'
import { AgentCache } from './agent-cache.ts'
import { type CredentialState, type FreshCredential, isFresh } from './state.ts'
import { refuseExchange, refuseSubject, type SubjectToken } from './subject-token.ts'
import { WaitingPlaces } from './waiting.ts'

/** Requests of a thread that may wait for credentials at once. */
const maxWaiting = 1_024
/** A renewal ahead of the end is asked for once in this time, milliseconds. */
const askAgainMs = 5_000
/** What requests tell of a credential is passed on once in this time, milliseconds. */
const notifyAgainMs = 1_000
/** A value that is not sent in its last 30 s lasts a minute when it may be sent this much longer, milliseconds. */
const leastOnceMs = 30_000
/** From a look at what is fresh to the request that has it, milliseconds. The margin of a value covers it. */
const preparingMs = 100
export const agentTokenBounds = { perAgent: 32, agents: 4_096 } as const

/** An upstream wants scopes. @param host the upstream */
export type NoteWanted = (name: string, scopes: readonly string[], host: string) => unknown

/** Asks the keeper for a newer value. `refused`: version that an upstream has refused. */
export type NeedCredential = (
  name: string,
  refused: number | undefined,
  subject?: SubjectToken,
) => Promise<CredentialState>

export interface WantedCredential {
  readonly name: string
  readonly agentId: string
  /** The token that it is had for; undefined: all agents have the same value. */
  readonly subject?: SubjectToken | undefined
  /** What it is had for that token: kept here, since the table may need the place before the request is sent. */
  state?: CredentialState | undefined
}

/** The credentials as one thread has them. */
export interface CredentialTable {
  /** Undefined when its value must not be sent any more. */
  fresh(wanted: WantedCredential): FreshCredential | undefined
  /** For a request that is sent now. What was fresh when the request was ready may end while it is prepared. */
  sendable(wanted: WantedCredential): FreshCredential | undefined
  /** Of the value that there is now, if there is one; another one for each change. */
  versionOf(wanted: WantedCredential): number | undefined
  /**
   * A value that may be sent, at once or after a renewal; or why there is none.
   *
   * @param isOnce the request is not sent again after a refusal: its value must last a minute
   */
  ready(wanted: WantedCredential, isOnce: boolean): Refusal | undefined | Promise<Refusal | undefined>
  /** Whether there is now another value than the one that an upstream refused. */
  renew(wanted: WantedCredential, refused: number): Promise<boolean>
  /**
   * An upstream refused a request for want of scopes: people are told. A refusal when a person can grant some of them.
   *
   * @param host the upstream
   */
  noteWanted(wanted: WantedCredential, scopes: readonly string[], host: string): Refusal | undefined
  noteUse(name: string): void
  set(state: CredentialState): void
  forget(agentId: string): void
  /** Forgets what was had for tokens that have ended. */
  sweep(): void
}

export interface CredentialTableParts {
  readonly known: readonly CredentialState[]
  readonly need: NeedCredential
  /** Called at most once a second for each credential. */
  readonly onUse: (name: string) => unknown
  /** As often. */
  readonly onWanted?: NoteWanted
  readonly clock: Pick<Clock, 'steady' | 'now'>
  /** Where a person connects an account; absent or undefined when the settings do not say where the console is. */
  readonly connectUrl?: (key: CredentialKey) => string | undefined
  /** In the first thread: they know the same tokens. */
  readonly keepers?: Pick<CredentialTable, 'forget' | 'sweep'>
}

interface TableEntry {
  state: CredentialState
  /** When a renewal ahead of its end was asked for last, steady milliseconds. */
  askedAt: number
  /** Milliseconds since the epoch. */
  readonly endsAt: number
}

/** The states, by credential, and by agent and token for those that agents have of their own. */
function createStates(known: readonly CredentialState[]) {
  const shared = new Map(known.map(state => [state.name, newEntry(state)]))
  const ofAgents = new AgentCache<TableEntry>(agentTokenBounds)
  const entryOf = ({ name, subject }: WantedCredential): TableEntry | undefined =>
    subject === undefined ? shared.get(name) : ofAgents.get(subject.agentId, keyOf(name, subject))
  return {
    ...{ ofAgents, entryOf },
    stateOf(wanted: WantedCredential): CredentialState | undefined {
      if (wanted.subject === undefined) return entryOf(wanted)?.state
      wanted.state ??= entryOf(wanted)?.state
      return wanted.state
    },
    /** An answer may come after a change that was made meanwhile. */
    set(state: CredentialState): void {
      const entry = shared.get(state.name)
      if (state.isGone) shared.delete(state.name)
      else if (entry === undefined) shared.set(state.name, newEntry(state))
      else if (state.version >= entry.state.version) entry.state = state
    },
    /** @param mayKeep false: it is for this request alone */
    setOf(wanted: WantedCredential, state: CredentialState, mayKeep: boolean): void {
      wanted.state = state
      const { subject } = wanted
      if (subject === undefined || !mayKeep) return
      const entry = entryOf(wanted)
      if (entry !== undefined) entry.state = state
      else if (state.value !== undefined)
        ofAgents.set(subject.agentId, keyOf(wanted.name, subject), newEntry(state, subject.endsAt))
    },
  }
}

function createAsking({ need }: CredentialTableParts, { set, setOf }: ReturnType<typeof createStates>) {
  const places = new WaitingPlaces(maxWaiting)
  let forgotten = 0
  return {
    forget: () => void forgotten++,
    /** Undefined when no place is free: it must not wait, or not any longer. */
    ask(wanted: WantedCredential, refused?: number): Promise<'asked' | undefined> | undefined {
      const { name, subject, agentId } = wanted
      const place = places.take(agentId)
      if (place === undefined) return undefined
      const before = forgotten
      const asked = need(name, refused, subject).then(state => {
        if (subject === undefined) set(state)
        // What was asked for before the rights of its agent have changed must not be found after it.
        else setOf(wanted, state, before === forgotten)
        return 'asked' as const
      })
      return Promise.race([asked, place.promise]).finally(() => places.give(agentId, place))
    },
  }
}

export function createCredentialTable(parts: CredentialTableParts): CredentialTable {
  const { known, onUse, clock, keepers } = parts
  const states = createStates(known)
  const { ofAgents, entryOf, stateOf, set } = states
  const asking = createAsking(parts, states)
  const { ask } = asking

  const freshAt = (wanted: WantedCredential, at: number) => {
    const state = stateOf(wanted)
    return isFresh(state, at) ? state : undefined
  }
  const fresh = (wanted: WantedCredential) => freshAt(wanted, clock.steady())
  const lasts = (wanted: WantedCredential, isOnce: boolean): boolean => {
    const state = fresh(wanted)
    const now = clock.steady()
    // One that is new and does not last is all that its server gives.
    return state !== undefined && (!isOnce || now < state.renewAt || state.freshUntil - now >= leastOnceMs)
  }
  const renewAhead = (wanted: WantedCredential): void => {
    const [entry, now] = [entryOf(wanted), clock.steady()]
    if (entry === undefined || now < entry.state.renewAt || now - entry.askedAt < askAgainMs) return
    entry.askedAt = now
    // The request goes on with the value that there is; the keeper tells people of a failure.
    ask({ ...wanted })?.catch(() => {})
  }
  return {
    versionOf: wanted => stateOf(wanted)?.version,
    sendable: wanted => freshAt(wanted, clock.steady() - preparingMs),
    ...{ fresh, set, noteUse: onceASecond(onUse, clock) },
    noteWanted: createNoteWanted(parts, states),
    ready(wanted, isOnce) {
      if (lasts(wanted, isOnce)) {
        renewAhead(wanted)
        return undefined
      }
      const missing = () => refuseMissing(wanted, stateOf(wanted), parts.connectUrl)
      return (
        ask(wanted)?.then(asked => (asked ? (lasts(wanted, isOnce) ? undefined : missing()) : refuse('busy'))) ??
        refuse('busy')
      )
    },
    async renew(wanted, refused) {
      await ask(wanted, refused)
      const state = fresh(wanted)
      return state !== undefined && state.version !== refused
    },
    forget(agentId) {
      asking.forget()
      ofAgents.forget(agentId)
      keepers?.forget(agentId)
    },
    sweep() {
      ofAgents.sweep(clock.now())
      keepers?.sweep()
    },
  }
}

function createNoteWanted(
  { onWanted = () => {}, clock, connectUrl }: CredentialTableParts,
  { stateOf }: ReturnType<typeof createStates>,
): CredentialTable['noteWanted'] {
  const notify = onceASecond(onWanted, clock)
  return (wanted, scopes, host) => {
    notify(wanted.name, scopes, host)
    const missing = scopes.filter(one => stateOf(wanted)?.grantable?.includes(one) === true)
    return missing.length === 0 ? undefined : refuseScopes(wanted, { scope: missing.join(' '), host }, connectUrl)
  }
}

function onceASecond<A extends unknown[]>(notify: (name: string, ...more: A) => unknown, clock: Pick<Clock, 'steady'>) {
  const usedAt = new Map<string, number>()
  return (name: string, ...more: A): void => {
    const now = clock.steady()
    if (now - (usedAt.get(name) ?? Number.NEGATIVE_INFINITY) < notifyAgainMs) return
    usedAt.set(name, now)
    notify(name, ...more)
  }
}

const newEntry = (state: CredentialState, endsAt = Number.POSITIVE_INFINITY): TableEntry => ({
  ...{ state, endsAt },
  askedAt: Number.NEGATIVE_INFINITY,
})

/** Names what a credential is had for: another token, even of the same agent, has a value of its own. */
export const keyOf = (name: string, { digest }: SubjectToken): string => `${name} ${digest}`

/** What is wrong is for people: the keeper logs it, and `GET /credentials` shows it. */
function refuseMissing(
  { name, subject }: WantedCredential,
  state: CredentialState | undefined,
  connectUrl: CredentialTableParts['connectUrl'],
): Refusal {
  const key = parseKey(name)
  const members = { credential: key.name }
  if (state?.problem?.kind !== 'needed') return refuse('credential_unavailable', undefined, { members })
  if (subject !== undefined) return subject.token === undefined ? refuseSubject(name, true) : refuseExchange(name)
  if (key.subject === '') return refuse('credential_needed', undefined, { members })
  const connect = connectUrl?.(key)
  const where = connect === undefined ? 'in the console of the gateway' : `at ${connect}`
  const detail = `A person must connect the account ${key.name} first, ${where}. A retry before that does not help.`
  return refuse('credential_needed', detail, { members: { ...members, ...(connect && { connect }) } })
}

/** The upstream has acted on nothing, and a person can let the next request pass. */
function refuseScopes(
  { name }: WantedCredential,
  { scope, host }: { readonly scope: string; readonly host: string },
  connectUrl: CredentialTableParts['connectUrl'],
): Refusal {
  const key = parseKey(name)
  const page = connectUrl?.(key)
  const connect = page && `${page}&${new URLSearchParams({ scope })}`
  const where = connect === undefined ? 'in the console of the gateway' : `at ${connect}`
  const detail = `${host} wants the scope ${scope} for this request. A person must connect the account ${key.name} again with it, ${where}. A retry before that does not help.`
  return refuse('credential_scope_needed', detail, {
    members: { credential: key.name, scope, ...(connect && { connect }) },
  })
}
