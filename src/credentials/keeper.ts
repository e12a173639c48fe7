import { asError } from '../base/as-error.ts'
import type { CredentialSetting } from '../config/credentials.ts'
import type { Clock } from '../runtime/clock.ts'
import { BackOff, jitter } from './back-off.ts'
import type { Obtained } from './obtain.ts'
import { lackingScopes, maxWantedScopes } from './scopes.ts'
import { CredentialError, type CredentialProblem, type CredentialState, isFresh } from './state.ts'

/** A value is not sent in the last 30 s of its life, or in the last quarter of a short one, milliseconds. */
const marginMs = 30_000
/** It is renewed in the last 10 % of its life, and at least this long before its end, milliseconds. */
const earlyMs = 60_000
/** Agents can provoke answers with status 401: at most one renewal of a credential in this time comes from them, milliseconds. */
const forcedMs = 60_000

export interface KeeperParts {
  readonly clock: Clock
  /**
   * Rejects with a CredentialError, or another error whose message has no value.
   *
   * @param current the value that there is, while it may be sent, no upstream has refused it, and its secret is the same
   */
  readonly obtain: (signal: AbortSignal, current: string | undefined) => Promise<Obtained>
  /** Called before a request that waits for the change goes on. */
  readonly onState: (state: CredentialState) => unknown
  /**
   * Called at each attempt to get a value from elsewhere, for people: `problem` when there is none, and the one before.
   *
   * @param isUsable requests get the value that there is
   */
  readonly onAttempt: (
    name: string,
    problem: CredentialError | undefined,
    before: CredentialProblem | undefined,
    isUsable: boolean,
  ) => void
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
  readonly #backOff = new BackOff()
  #forcedAt = Number.NEGATIVE_INFINITY
  /** Milliseconds since the epoch; undefined while there was none. */
  renewedAt: number | undefined = undefined
  /** Milliseconds since the epoch; undefined while no request had it. */
  lastUsedAt: number | undefined = undefined
  readonly #wantedScopes = new Set<string>()
  readonly #stopping = new AbortController()

  /** @param name key of an account (`keyText`); the name of the credential when absent */
  constructor(setting: CredentialSetting, parts: KeeperParts, name: string = setting.Name ?? '') {
    this.setting = setting
    this.name = name
    this.#parts = parts
    this.#state = {
      ...{ name: this.name, version: 0, value: undefined },
      ...{ freshUntil: 0, renewAt: 0 },
      problem: undefined,
    }
  }

  get isRenewing(): boolean {
    return this.#running !== undefined
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
    await this.#renew(now, isRefused)
    return this.#state
  }

  /**
   * The value has changed elsewhere. In force in all threads when it resolves.
   *
   * @param found undefined: what there is must not be sent any more
   */
  async adopt(
    found: (Obtained & { readonly renewedAt: number }) | undefined,
    problem: CredentialError | undefined,
  ): Promise<void> {
    this.#backOff.reset()
    if (found !== undefined) this.renewedAt = found.renewedAt
    const next =
      found === undefined ? { value: undefined, freshUntil: 0, renewAt: 0 } : valid(found, this.#parts.clock.steady())
    await this.#set({ ...next, problem: problem && { kind: problem.kind, text: problem.message } })
  }

  /** The secret is another one. What it was is forgotten once the new one works. */
  async restart(): Promise<void> {
    this.#backOff.reset()
    if (this.#running !== undefined) this.#isStale = true
    await this.#renew(this.#parts.clock.steady(), true)
  }

  noteUse(): void {
    this.lastUsedAt = this.#parts.clock.now()
  }

  close(): void {
    this.#stopping.abort()
  }

  /** @param fromSecret a value that is made from the secret is wanted, not a longer life of the one that there is */
  #renew(now: number, fromSecret: boolean): Promise<void> {
    if (this.#running === undefined && !this.#backOff.isOver(now)) return Promise.resolve()
    this.#running ??= this.#attempts(fromSecret).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #attempts(fromSecret: boolean): Promise<void> {
    do {
      const wasStale = this.#isStale
      this.#isStale = false
      await this.#attempt(fromSecret || wasStale)
    } while (this.#isStale && !this.#stopping.signal.aborted)
  }

  async #attempt(fromSecret: boolean): Promise<void> {
    const { clock, onAttempt } = this.#parts
    const asked = clock.steady()
    const before = this.#state.problem
    try {
      const current = !fromSecret && isFresh(this.#state, asked) ? this.#state.value : undefined
      const obtained = await this.#parts.obtain(this.#stopping.signal, current)
      if (obtained.isCurrent?.() === false) {
        this.#isStale = true
        return
      }
      this.#backOff.reset()
      this.renewedAt = clock.now()
      this.#set(valid(obtained, asked))
      onAttempt(this.name, undefined, before, true)
    } catch (error) {
      const problem = error instanceof CredentialError ? error : new CredentialError('failing', asError(error).message)
      this.#backOff.fail(clock.steady())
      this.#set({ problem: { kind: problem.kind, text: problem.message } })
      onAttempt(this.name, problem, before, isFresh(this.#state, clock.steady()))
    }
  }

  #set(change: Partial<CredentialState>): unknown {
    const { version, value } = this.#state
    const isNew = 'value' in change && change.value !== value
    this.#state = { ...this.#state, ...change, version: isNew ? version + 1 : version }
    return this.#parts.onState(this.#state)
  }

  get wantedScopes(): readonly string[] {
    return lackingScopes(this.setting, [...this.#wantedScopes], this.#state.grantable)
  }

  /** An upstream wants scopes: those that it does not have, and that none has wanted before. */
  noteWanted(scopes: readonly string[]): readonly string[] {
    const { grantable = [] } = this.#state
    const kept: string[] = []
    for (const one of lackingScopes(this.setting, scopes, grantable)) {
      // Those that the settings name are few, and others leave them their place.
      if (this.#wantedScopes.has(one) || (this.#wantedScopes.size >= maxWantedScopes && !grantable.includes(one)))
        continue
      this.#wantedScopes.add(one)
      kept.push(one)
    }
    return kept
  }

  reads(secret: string): boolean {
    return this.setting.Secret === secret || this.setting.RefreshToken === secret
  }
}

/** Counted from the request for it: the answer may have taken long. */
function valid({ value, lifetimeMs, grantable }: Obtained, asked: number) {
  const early = Math.min(Math.max(earlyMs, lifetimeMs / 10), lifetimeMs / 2)
  const spread = early * jitter * Math.random()
  const margin = Math.min(marginMs, lifetimeMs / 4)
  const isEndless = lifetimeMs === Number.POSITIVE_INFINITY
  const end = asked + lifetimeMs
  return {
    ...{ value, grantable },
    freshUntil: isEndless ? end : end - margin,
    renewAt: isEndless ? end : end - early - spread,
    problem: undefined,
  }
}
