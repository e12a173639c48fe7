import type { CredentialSetting } from '../config/credentials.ts'
import type { Clock } from '../runtime/clock.ts'
import { AgentCache } from './agent-cache.ts'
import { Attempts, BackOff } from './back-off.ts'
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

/** How the token server of a credential has answered an agent, whichever of its tokens was sent. */
interface AgentPause {
  /** After an attempt that says nothing of the token. */
  readonly backOff: BackOff
  /** Those under way, and tokens that it does not take. */
  readonly attempts: Attempts
  /** Milliseconds since the epoch: kept so long that the next failure makes a longer one. */
  endsAt: number
}

/** Agents whose pauses are kept; each has one for each credential at most. */
const pauseBounds = { perAgent: Number.POSITIVE_INFINITY, agents: agentTokenBounds.agents } as const
/** Tokens of an agent that are refused: each says nothing of the others, but an agent may have any number. */
const refusedTokens = { atOnce: agentTokenBounds.perAgent, everyMs: 5_000 } as const
/** More than the longest pause, and than the time until all attempts are left again, milliseconds. */
const keepPauseMs = 180_000

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
    if (found?.keeper.isRenewing !== true && this.#isPaused(subject.agentId, name))
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

  #isPaused(agentId: string, name: string): boolean {
    const pause = this.#pauses.get(agentId, name)
    const now = this.#parts.clock.steady()
    return pause !== undefined && !(pause.backOff.isOver(now) && pause.attempts.areLeft(now))
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
        this.#pauseOf(agentId, setting.Name ?? '').attempts.begin(clock.steady())
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

  /** A token that is refused says nothing of the others of its agent: it ends no pause, and begins none until it is one of many. */
  #note(agentId: string, name: string, problem: CredentialError | undefined): void {
    if (problem?.kind === 'needed') return
    const { backOff, attempts } = this.#pauseOf(agentId, name)
    attempts.giveBack()
    if (problem === undefined) backOff.reset()
    else backOff.fail(this.#parts.clock.steady())
  }

  #pauseOf(agentId: string, name: string): AgentPause {
    const found = this.#pauses.get(agentId, name)
    const pause = found ?? { backOff: new BackOff(), attempts: new Attempts(refusedTokens), endsAt: 0 }
    pause.endsAt = this.#parts.clock.now() + keepPauseMs
    this.#pauses.set(agentId, name, pause)
    return pause
  }
}

/** It ends with the token that it was had for. */
const notBeyond = ({ value, lifetimeMs }: Obtained, leftMs: number): Obtained => ({
  value,
  lifetimeMs: Math.min(lifetimeMs, leftMs),
})

const ended: CredentialProblem = { kind: 'needed', text: 'The token of the agent has ended.' }
const paused: CredentialProblem = {
  kind: 'failing',
  text: 'The token server has just failed this agent, or refused many tokens of it.',
}

const without = (name: string, problem: CredentialProblem): CredentialState => ({
  ...{ name, version: 0, value: undefined, freshUntil: 0, renewAt: 0 },
  problem,
})
