import { asError } from '../base/as-error.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import type { Clock } from '../runtime/clock.ts'
import { type Obtained, type SourceParts, secretOf } from './obtain.ts'
import { sources } from './sources.ts'
import { CredentialError, type CredentialState, isFresh } from './state.ts'

/** A value is not sent in the last 30 s of its life, or in the last quarter of a short one, milliseconds. */
const marginMs = 30_000
/** It is renewed in the last 10 % of its life, and at least this long before its end, milliseconds. */
const earlyMs = 60_000
/** Pause after a failure, milliseconds: it doubles with each further one. */
const [firstPauseMs, longestPauseMs] = [1_000, 60_000]
/** Agents can provoke answers with status 401: at most one renewal of a credential in this time comes from them, milliseconds. */
const forcedMs = 60_000
/** Random part of the pauses, so that gateways that started together do not ask together. */
const jitter = 0.1

export interface KeeperParts extends Omit<SourceParts, 'clock' | 'current'> {
  readonly clock: Clock
  /** Called before a request that waits for the change goes on. */
  readonly onState: (state: CredentialState) => void
  /** Called at each attempt to get a value from elsewhere, for people: `problem` when there is none. */
  readonly onAttempt: (name: string, problem: CredentialError | undefined) => void
}

/** Keeps the value of one credential: gets it, renews it ahead of its end, and never asks twice at once. */
export class CredentialKeeper {
  readonly setting: CredentialSetting
  readonly name: string
  readonly #parts: KeeperParts
  #state: CredentialState
  #running: Promise<void> | undefined
  /** The secret changed during an attempt: its result may rest on the old one. */
  #isStale = false
  #failures = 0
  /** Steady milliseconds. */
  #notBefore = 0
  #forcedAt = Number.NEGATIVE_INFINITY
  /** Milliseconds since the epoch; undefined while there was none. */
  renewedAt: number | undefined = undefined
  readonly #stopping = new AbortController()

  constructor(setting: CredentialSetting, parts: KeeperParts) {
    this.setting = setting
    this.name = setting.Name ?? ''
    this.#parts = parts
    this.#state = {
      ...{ name: this.name, version: 0, value: undefined },
      ...{ freshUntil: 0, renewAt: 0 },
      problem: undefined,
    }
  }

  get state(): CredentialState {
    return this.#state
  }

  /**
   * The state once an attempt to get a newer value has ended, if one is due; otherwise the state as it is.
   *
   * @param refused version whose value an upstream has refused; undefined: none was
   */
  async renewed(refused: number | undefined): Promise<CredentialState> {
    const now = this.#parts.clock.steady()
    const isRefused = refused !== undefined && refused === this.#state.version
    if (isRefused && this.#running === undefined) {
      if (now - this.#forcedAt < forcedMs) return this.#state
      this.#forcedAt = now
    } else if (!isRefused && isFresh(this.#state, now) && now < this.#state.renewAt) return this.#state
    await this.#renew(now)
    return this.#state
  }

  /** The secret is another one. What it was is forgotten once the new one works. */
  async restart(): Promise<void> {
    this.#notBefore = 0
    this.#failures = 0
    if (this.#running !== undefined) this.#isStale = true
    await this.#renew(this.#parts.clock.steady())
  }

  close(): void {
    this.#stopping.abort()
  }

  #renew(now: number): Promise<void> {
    if (this.#running === undefined && now < this.#notBefore) return Promise.resolve()
    this.#running ??= this.#attempts().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #attempts(): Promise<void> {
    do {
      this.#isStale = false
      await this.#attempt()
    } while (this.#isStale && !this.#stopping.signal.aborted)
  }

  async #attempt(): Promise<void> {
    const { clock, onAttempt } = this.#parts
    const asked = clock.steady()
    try {
      const current = isFresh(this.#state, asked) ? this.#state.value : undefined
      const parts = { ...this.#parts, current }
      const obtained = await sources[this.setting.Type](this.setting, parts, this.#stopping.signal)
      this.#failures = 0
      this.#notBefore = 0
      this.renewedAt = clock.now()
      this.#set(valid(obtained, asked))
      onAttempt(this.name, undefined)
    } catch (error) {
      const problem = error instanceof CredentialError ? error : new CredentialError('failing', asError(error).message)
      const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** this.#failures)
      this.#failures += 1
      this.#notBefore = clock.steady() + pause * (1 + jitter * Math.random())
      this.#set({ problem: { kind: problem.kind, text: problem.message } })
      onAttempt(this.name, problem)
    }
  }

  #set(change: Partial<CredentialState>): void {
    const { version, value } = this.#state
    const isNew = change.value !== undefined && change.value !== value
    this.#state = { ...this.#state, ...change, version: isNew ? version + 1 : version }
    this.#parts.onState(this.#state)
  }

  /** Whether its value comes from this secret. */
  reads(secret: string): boolean {
    return secretOf(this.setting) === secret
  }
}

/** Counted from the request for it: the answer may have taken long. */
function valid({ value, lifetimeMs }: Obtained, asked: number) {
  const early = Math.min(Math.max(earlyMs, lifetimeMs / 10), lifetimeMs / 2)
  const spread = early * jitter * Math.random()
  const margin = Math.min(marginMs, lifetimeMs / 4)
  const isEndless = lifetimeMs === Number.POSITIVE_INFINITY
  const end = asked + lifetimeMs
  return {
    value,
    freshUntil: isEndless ? end : end - margin,
    renewAt: isEndless ? end : end - early - spread,
    problem: undefined,
  }
}
