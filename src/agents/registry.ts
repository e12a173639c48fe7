import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../clock.ts'
import { isRefusal, type Refusal, refuse } from '../errors.ts'
import type { AgentChange, AgentRecord, AgentStatus, AuditEntry, Page, Paged, Role, Store } from '../storage/store.ts'
import { type Transition, transitions, trustScore } from './agent.ts'
import { createQueues } from './queues.ts'
import {
  chosenProblem,
  createSubjectGuard,
  newAgent,
  type Registration,
  recorded,
  rolesProblem,
} from './registration.ts'
import { generateSecret, type SecretHasher, secretProblem } from './secret.ts'
import { type AgentListener, createSnapshot, type Snapshot } from './snapshot.ts'
import { createStandingBook, type StandingBook } from './standing.ts'
import { createTelling, type Telling } from './telling.ts'
import { probationTrust, type QuarantineRules, type TrustCause } from './trust.ts'

/** The caller that makes a change, for the audit trail. */
export interface By {
  /** Agent id, or `gateway`. */
  readonly actor: string
  readonly requestId: string | null
}

export interface RegistryOptions {
  readonly store: Pick<Store, 'agents'>
  readonly clock: Clock
  readonly secrets: SecretHasher
  /** Policy that new agents get unless the registration names one (Policy:AssignOnRegistration). */
  readonly defaultPolicy: string | undefined
  readonly quarantine: QuarantineRules
  /**
   * Called for each change, `undefined` when the agent was removed, after the listeners of `subscribe`. A change is
   * answered only when this is done, so that it holds everywhere from then on.
   */
  readonly onChange?: (id: string, agent: AgentRecord | undefined) => Promise<void>
  /** Called when trust or denials have quarantined an agent. */
  readonly onQuarantine?: (id: string, cause: 'trust' | 'denials') => void
  /** Called when a change of trust, which nobody waits for, could not be stored. */
  readonly onError?: (error: unknown) => void
}

/**
 * All agents. Reads come from a snapshot in memory; a change is stored first, with its audit entry, and then
 * shows in the snapshot at once. Changes of one agent are made in the order they were asked for.
 * Methods that change something reject with StoreError when the store fails; then nothing was changed.
 */
export interface Registry {
  /** By UUID in any letter case. */
  get(id: string): AgentRecord | undefined
  /** The agent bound to this subject of the external identity provider. */
  bySubject(subject: string): AgentRecord | undefined
  /** In the order of registration. */
  list(page: Page): Paged<AgentRecord>
  /** Calls the listener for each change, once it is visible and before it is answered. Returns a function that unsubscribes. */
  subscribe(listener: AgentListener): () => void
  /** Whether some active agent has the role. */
  hasActive(role: Role): boolean
  /** Live trust in [0, 1]. */
  trustOf(agent: AgentRecord): number
  /** Whether this is the agent's secret. Equally slow, and false, when there is no such agent. */
  verifySecret(id: string, secret: string): Promise<boolean | Refusal>
  register(registration: Registration, by: By): Promise<AgentRecord | Refusal>
  setPolicy(id: string, policyName: string | null, by: By): Promise<AgentRecord | Refusal>
  setRoles(id: string, roles: readonly Role[], by: By): Promise<AgentRecord | Refusal>
  setExternalSubject(id: string, subject: string | null, by: By): Promise<AgentRecord | Refusal>
  transition(id: string, transition: Transition, by: By): Promise<AgentRecord | Refusal>
  /** Gives the agent a new random secret, returned this once. The old one stops working. */
  rotateSecret(id: string, by: By): Promise<{ readonly clientSecret: string } | Refusal>
  remove(id: string, by: By): Promise<{ readonly removed: string } | Refusal>
  /** Notes what an active agent did. Returns at once; is stored soon, and may quarantine the agent. */
  recordTrust(id: string, cause: TrustCause, requestId: string | null): void
  /** Shows agents as they are in the store: a change may have been kept although it was told to have failed. */
  reload(): Promise<void>
  /** Stores what is noted, and resolves when no change is under way. For shutdown. */
  flush(): Promise<void>
}

/** How one change is recorded, and which statuses it may start from (any, when absent). */
interface Change {
  readonly action: string
  readonly by: By
  readonly from?: readonly AgentStatus[]
  readonly details?: AuditEntry['details']
}

/** Reads all agents from the store. */
export async function openRegistry(options: RegistryOptions): Promise<Registry> {
  return new StoredRegistry(options, await options.store.agents.all())
}

class StoredRegistry implements Registry {
  readonly #options: RegistryOptions
  readonly #snapshot: Snapshot
  readonly #standings: StandingBook
  /** One queue for each agent, so that the snapshot sees changes in the order the store made them. */
  readonly #queues = createQueues()
  readonly #withSubject = createSubjectGuard(subject => this.bySubject(subject))
  readonly #telling: Telling
  /** Agents whose noted trust will be written when the queue of the agent is free. */
  readonly #trustDue = new Set<string>()

  constructor(options: RegistryOptions, agents: readonly AgentRecord[]) {
    this.#options = options
    this.#snapshot = createSnapshot(agents)
    this.#telling = createTelling(options.onChange)
    this.#standings = createStandingBook(options.clock, options.quarantine)
  }

  get(id: string) {
    return this.#snapshot.get(id)
  }

  bySubject(subject: string) {
    return this.#snapshot.bySubject(subject)
  }

  list(page: Page) {
    return this.#snapshot.list(page)
  }

  subscribe(listener: AgentListener) {
    return this.#snapshot.subscribe(listener)
  }

  hasActive(role: Role) {
    return this.#snapshot.values().some(agent => agent.status === 'Active' && agent.roles.includes(role))
  }

  trustOf(agent: AgentRecord) {
    return trustScore(agent, this.#options.clock.now())
  }

  async verifySecret(id: string, secret: string) {
    if (secretProblem(secret) !== undefined) return false
    const hash = await this.#options.store.agents.secretHash(id.toLowerCase())
    return this.#options.secrets.verify(secret, hash)
  }

  async register(registration: Registration, by: By) {
    const agent = newAgent(registration, this.#options.clock.now(), this.#options.defaultPolicy)
    return this.#withSubject(agent.id, agent.externalSubject, () =>
      this.#inTurn(agent.id, () => this.#insert(agent, registration.clientSecret, by)),
    )
  }

  setPolicy(id: string, policyName: string | null, by: By) {
    return this.#change(id, { policyName }, { action: 'agent.policy', by })
  }

  async setRoles(id: string, roles: readonly Role[], by: By) {
    const refusal = rolesProblem(this.get(id), roles)
    return refusal ?? this.#change(id, { roles: [...new Set(roles)] }, { action: 'agent.roles', by })
  }

  setExternalSubject(id: string, externalSubject: string | null, by: By) {
    return this.#withSubject(id.toLowerCase(), externalSubject, () =>
      this.#change(id, { externalSubject }, { action: 'agent.subject', by }),
    )
  }

  async transition(id: string, transition: Transition, by: By) {
    const { from, to } = transitions[transition]
    const isLift = transition === 'liftQuarantine'
    const trust = isLift ? { trustValue: probationTrust, trustAt: this.#options.clock.now() } : {}
    const changed = await this.#change(id, { status: to, ...trust }, { action: `agent.${transition}`, by, from })
    if (isLift && !isRefusal(changed)) this.#standings.forget(changed.id)
    return changed
  }

  async rotateSecret(id: string, by: By) {
    if (this.get(id) === undefined) return refuse('not_found')
    const clientSecret = generateSecret()
    const secretHash = await this.#options.secrets.hash(clientSecret)
    if (isRefusal(secretHash)) return secretHash
    const strong = this.get(id)?.weakSecret === true ? { weakSecret: false } : {}
    const changed = await this.#change(id, { secretHash, ...strong }, { action: 'agent.rotateSecret', by })
    return isRefusal(changed) ? changed : { clientSecret }
  }

  remove(id: string, by: By) {
    return this.#inTurn(id.toLowerCase(), async key => {
      const agent = this.get(key)
      const before = agent === undefined ? null : recorded(agent)
      const removed = await this.#options.store.agents.remove(key, this.#entry('agent.remove', key, by, { before }))
      if (!removed) return refuse('not_found')
      this.#hide(key)
      return { removed: key }
    })
  }

  recordTrust(id: string, cause: TrustCause, requestId: string | null) {
    const agent = this.get(id)
    // Only active agents gain or lose trust.
    if (agent?.status !== 'Active') return
    if (this.#standings.note(agent, cause, requestId)) this.#scheduleTrust(agent.id)
  }

  async reload() {
    const stored = new Map((await this.#options.store.agents.all()).map(agent => [agent.id, agent]))
    const ids = new Set([...stored.keys(), ...this.#snapshot.values().map(({ id }) => id)])
    for (const id of ids) {
      // One that changes meanwhile is read again when its turn comes.
      if (!isDeepStrictEqual(stored.get(id), this.get(id))) await this.#inTurn(id, key => this.#readAgain(key))
    }
  }

  async flush() {
    for (const id of this.#standings.noted()) this.#scheduleTrust(id)
    await this.#queues.idle()
    await this.#telling.idle()
  }

  #change(id: string, fields: AgentChange, what: Change): Promise<AgentRecord | Refusal> {
    return this.#inTurn(id.toLowerCase(), key => this.#write(key, fields, what))
  }

  /**
   * Does work when the turn of the agent comes, and resolves when every thread has heard of it. The queue goes on before
   * that: a thread that hangs must not delay the next change of the agent, such as its revocation.
   */
  async #inTurn<T>(id: string, work: (id: string) => Promise<T>): Promise<T> {
    const result = await this.#queues.run(id, () => work(id))
    await this.#telling.told(id)
    return result
  }

  /** Stores a change, then shows it. Only in the turn of the agent. */
  async #write(id: string, fields: AgentChange, { action, by, from, details }: Change) {
    const result = await this.#options.store.agents.update(id, fields, this.#entry(action, id, by, details), from)
    if (result === 'wrongState') return refuse('wrong_state')
    if (result === 'notFound') return refuse('not_found')
    return this.#show(result)
  }

  async #readAgain(id: string): Promise<void> {
    const agent = (await this.#options.store.agents.all()).find(stored => stored.id === id)
    if (agent === undefined) this.#hide(id)
    else this.#show(agent)
  }

  #hide(id: string): void {
    this.#snapshot.delete(id)
    this.#standings.forget(id)
    this.#telling.tell(id, undefined)
  }

  #show(agent: AgentRecord): AgentRecord {
    this.#snapshot.set(agent)
    this.#telling.tell(agent.id, agent)
    return agent
  }

  #entry(action: string, subject: string, by: By, details: AuditEntry['details'] = {}): AuditEntry {
    return { at: this.#options.clock.now(), ...by, action, subject, details }
  }

  async #insert(agent: AgentRecord, secret: string, by: By): Promise<AgentRecord | Refusal> {
    if (this.get(agent.id) !== undefined) return refuse('already_exists')
    const hash = chosenProblem(agent, secret) ?? (await this.#options.secrets.hash(secret))
    if (isRefusal(hash)) return hash
    const entry = this.#entry('agent.register', agent.id, by, { after: recorded(agent) })
    await this.#options.store.agents.insert(agent, hash, entry)
    return this.#show(agent)
  }

  /** At most one write of an agent is under way and one waits, however many events come. */
  #scheduleTrust(id: string): void {
    if (this.#trustDue.has(id)) return
    this.#trustDue.add(id)
    this.#inTurn(id, key => this.#writeTrust(key)).catch(error => {
      this.#trustDue.delete(id)
      this.#options.onError?.(error)
    })
  }

  async #writeTrust(id: string): Promise<void> {
    this.#trustDue.delete(id)
    const change = this.#standings.take(id)
    if (change === undefined) return
    const { trustValue, trustAt, quarantine: cause, details } = change
    const by = { actor: 'gateway', requestId: change.requestId }
    const fields = { trustValue, trustAt }
    if (cause !== undefined) {
      const what = { action: 'agent.quarantine', by, from: ['Active'], details: { ...details, cause } } as const
      const quarantined = await this.#write(id, { ...fields, status: 'Quarantined' }, what)
      if (!isRefusal(quarantined)) {
        this.#options.onQuarantine?.(id, cause)
        return
      }
    }
    await this.#write(id, fields, { action: 'agent.trust', by, details })
  }
}
