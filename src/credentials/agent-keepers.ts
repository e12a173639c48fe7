import type { CredentialSetting } from '../config/credentials.ts'
import type { Clock } from '../runtime/clock.ts'
import { AgentCache } from './agent-cache.ts'
import { BackOff } from './back-off.ts'
import { CredentialKeeper } from './keeper.ts'
import type { Obtained, SourceParts } from './obtain.ts'
import { sources } from './sources.ts'
import type { CredentialError, CredentialProblem, CredentialState } from './state.ts'
import type { SubjectToken } from './subject-token.ts'
import { agentTokenBounds, keyOf } from './table.ts'

export interface AgentKeeperParts {
  readonly clock: Clock
  readonly sourceParts: SourceParts
  /** Called at each attempt, with the agent whose token was exchanged. */
  readonly onAttempt: (name: string, problem: CredentialError | undefined, agentId: string) => void
}

/** What the token server of a credential did not answer to an agent, whichever of its tokens was sent. */
interface AgentPause {
  readonly backOff: BackOff
  /** Milliseconds since the epoch: kept so long that the next failure makes a longer one. */
  endsAt: number
}

/** Agents whose pauses are kept; each has one for each credential at most. */
const pauseBounds = { perAgent: Number.POSITIVE_INFINITY, agents: agentTokenBounds.agents } as const
/** More than the longest pause, milliseconds. */
const keepPauseMs = 120_000

interface AgentEntry {
  readonly keeper: CredentialKeeper
  readonly token: string
  readonly endsAt: number
}

/** Keepers of what is had for tokens of agents: one for each credential and token. They are in the first thread. */
export class AgentKeepers {
  readonly #parts: AgentKeeperParts
  readonly #entries = new AgentCache<AgentEntry>(agentTokenBounds)
  /** An agent with more tokens than have an entry would have none otherwise. */
  readonly #pauses = new AgentCache<AgentPause>(pauseBounds)

  constructor(parts: AgentKeeperParts) {
    this.#parts = parts
  }

  /** As `CredentialKeeper.renewed`. Has a problem when the token is not known, or has ended. */
  async renewed(
    setting: CredentialSetting,
    subject: SubjectToken,
    refused: number | undefined,
  ): Promise<CredentialState> {
    const name = setting.Name ?? ''
    const key = keyOf(name, subject)
    const found = this.#entries.get(subject.agentId, key)
    const { token = found?.token } = subject
    if (token === undefined || subject.endsAt <= this.#parts.clock.now()) return without(name, ended)
    const pause = this.#pauses.get(subject.agentId, name)
    if (found?.keeper.isRenewing !== true && pause?.backOff.isOver(this.#parts.clock.steady()) === false)
      return found?.keeper.state ?? without(name, paused)
    const entry = found ?? { keeper: this.#open(setting, subject, token), token, endsAt: subject.endsAt }
    if (found === undefined) this.#entries.set(subject.agentId, key, entry)
    return entry.keeper.renewed(refused)
  }

  /** The tokens of an agent are not taken any more, or are another agent's. */
  forget(agentId: string): void {
    this.#entries.forget(agentId)
  }

  /** Call about every second. */
  sweep(): void {
    const now = this.#parts.clock.now()
    this.#entries.sweep(now)
    this.#pauses.sweep(now)
  }

  #open(setting: CredentialSetting, { agentId, endsAt }: SubjectToken, token: string): CredentialKeeper {
    const { clock, sourceParts, onAttempt } = this.#parts
    return new CredentialKeeper(setting, {
      clock,
      obtain: async signal => {
        const asked = clock.now()
        const { Type } = setting
        if (Type === 'RefreshToken' || Type === 'Connect')
          throw new Error('cannot happen: a refresh token is of no agent')
        const obtained = await sources[Type](setting, { ...sourceParts, subjectToken: token }, signal)
        return notBeyond(obtained, endsAt - asked)
      },
      onState: () => {},
      onAttempt: (name, problem) => {
        this.#note(agentId, name, problem)
        onAttempt(name, problem, agentId)
      },
    })
  }

  /** A token that is refused says nothing of the others of its agent: it begins no pause, and ends none. */
  #note(agentId: string, name: string, problem: CredentialError | undefined): void {
    const { clock } = this.#parts
    const found = this.#pauses.get(agentId, name)
    if (problem === undefined) found?.backOff.reset()
    if (problem?.kind !== 'failing') return
    const pause = found ?? { backOff: new BackOff(), endsAt: 0 }
    pause.endsAt = clock.now() + keepPauseMs
    pause.backOff.fail(clock.steady())
    this.#pauses.set(agentId, name, pause)
  }
}

/** It ends with the token that it was had for. */
const notBeyond = ({ value, lifetimeMs }: Obtained, leftMs: number): Obtained => ({
  value,
  lifetimeMs: Math.min(lifetimeMs, leftMs),
})

const ended: CredentialProblem = { kind: 'needed', text: 'The token of the agent has ended.' }
const paused: CredentialProblem = { kind: 'failing', text: 'The token server did not answer this agent just now.' }

const without = (name: string, problem: CredentialProblem): CredentialState => ({
  ...{ name, version: 0, value: undefined, freshUntil: 0, renewAt: 0 },
  problem,
})
