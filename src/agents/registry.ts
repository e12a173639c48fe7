/** The registry of agents: changes of agents, and all of them in memory. */
import { isDeepStrictEqual } from 'node:util'
import { isRefusal, type Refusal, refuse } from '../base/refusals.ts'
import type { AgentChange, AgentKey, AgentRecord, AgentStatus, AuditEntry, Role, Store } from '../storage/store.ts'
import { probationTrust, type Transition, type TrustCause, transitions, trustScore } from './agent.ts'
import { chosenProblem, newAgent, type Registration, recorded, rolesProblem } from './registration.ts'
import { generateSecret, type SecretHasher, secretProblem } from './secret.ts'
import { createTrustWriter, type TrustOptions, type TrustWriter } from './trust-writer.ts'

/** The caller that makes a change, for the audit trail. */
export interface By {
  /** Agent id, or `gateway`. */
  readonly actor: string
  readonly requestId: string | null
}

export interface RegistryOptions extends TrustOptions {
  readonly store: Pick<Store, 'agents' | 'feed'>
  readonly secrets: SecretHasher
  /** Policy that new agents get unless the registration names one (Policy:AssignOnRegistration). */
  readonly defaultPolicy: string | undefined
}

/** The audit record of a change, and the statuses from which it is allowed (any, when absent). */
interface StatusChange {
  readonly action: string
  readonly by: By
  readonly from?: readonly AgentStatus[]
}

/** Reads all agents from the store. */
export async function openRegistry(options: RegistryOptions): Promise<Registry> {
  const snapshot = createSnapshot()
  await options.store.feed.agents.follow(snapshot)
  return new Registry(options, snapshot)
}

/**
 * All agents. Reads come from a snapshot in memory, which changes by the feed of the store alone. A change is answered
 * when it is in force here and in every listener. Methods that change something reject with StoreError when the store
 * fails; then nothing was changed.
 */
export class Registry {
  readonly get: Snapshot['get']
  readonly bySubject: Snapshot['bySubject']
  readonly byKeyHash: Snapshot['byKeyHash']
  readonly values: Snapshot['values']
  readonly subscribe: Snapshot['subscribe']
  readonly #options: RegistryOptions
  readonly #trust: TrustWriter

  constructor(options: RegistryOptions, snapshot: Snapshot) {
    this.#options = options
    this.get = snapshot.get
    this.bySubject = snapshot.bySubject
    this.byKeyHash = snapshot.byKeyHash
    this.values = snapshot.values
    this.subscribe = snapshot.subscribe
    this.#trust = createTrustWriter(options)
    snapshot.subscribe((id, agent, before) => {
      const isLifted = before?.status === 'Quarantined' && agent?.status !== 'Quarantined'
      if (agent === undefined || isLifted) this.#trust.forget(id)
    })
  }

  hasActive(role: Role) {
    return this.values().some(agent => agent.status === 'Active' && agent.roles.includes(role))
  }

  /** Live trust in [0, 1]. */
  trustOf(agent: AgentRecord) {
    return trustScore(agent, this.#options.clock.now())
  }

  /** Whether this is the agent's secret. Equally slow, and false, when there is no such agent. */
  async verifySecret(id: string, secret: string) {
    if (secretProblem(secret) !== undefined) return false
    const hash = await this.#options.store.agents.secretHash(id.toLowerCase())
    return this.#options.secrets.verify(secret, hash)
  }

  async register(registration: Registration, by: By) {
    const { clock, defaultPolicy, store, secrets } = this.#options
    const agent = newAgent(registration, clock.now(), defaultPolicy)
    if (this.get(agent.id) !== undefined) return refuse('already_exists')
    const hash = chosenProblem(agent, registration.clientSecret) ?? (await secrets.hash(registration.clientSecret))
    if (isRefusal(hash)) return hash
    const entry = this.#entry('agent.register', agent.id, by, { after: recorded(agent) })
    const result = await store.agents.insert(agent, hash, entry)
    if (result === 'subjectTaken') return refuseSubject()
    return result === 'exists' ? refuse('already_exists') : agent
  }

  setPolicy(id: string, policyName: string | null, by: By) {
    return this.#change(id, { policyName }, { action: 'agent.policy', by })
  }

  async setRoles(id: string, roles: readonly Role[], by: By) {
    const refusal = rolesProblem(this.get(id), roles)
    return refusal ?? this.#change(id, { roles: [...new Set(roles)] }, { action: 'agent.roles', by })
  }

  setTags(id: string, tags: Readonly<Record<string, string>>, by: By) {
    return this.#change(id, { tags }, { action: 'agent.tags', by })
  }

  setExternalSubject(id: string, externalSubject: string | null, by: By) {
    return this.#change(id, { externalSubject }, { action: 'agent.subject', by })
  }

  setRecording(id: string, recording: AgentRecord['recording'], by: By) {
    return this.#change(id, { recording }, { action: 'agent.recording', by })
  }

  transition(id: string, transition: Transition, by: By) {
    const { from, to } = transitions[transition]
    const isLift = transition === 'liftQuarantine'
    const trust = isLift ? { trustValue: probationTrust, trustAt: this.#options.clock.now() } : {}
    return this.#change(id, { status: to, ...trust }, { action: `agent.${transition}`, by, from })
  }

  /** Gives the agent a new random secret, returned this once. The old one stops working. */
  async rotateSecret(id: string, by: By) {
    if (this.get(id) === undefined) return refuse('not_found')
    const clientSecret = generateSecret()
    const secretHash = await this.#options.secrets.hash(clientSecret)
    if (isRefusal(secretHash)) return secretHash
    const strong = this.get(id)?.weakSecret === true ? { weakSecret: false } : {}
    const changed = await this.#change(id, { secretHash, ...strong }, { action: 'agent.rotateSecret', by })
    return isRefusal(changed) ? changed : { clientSecret }
  }

  async remove(id: string, by: By) {
    const key = id.toLowerCase()
    const agent = this.get(key)
    const before = agent === undefined ? null : recorded(agent)
    const entry = this.#entry('agent.remove', key, by, { before })
    const result = await this.#options.store.agents.remove(key, entry)
    return result === 'removed' ? { removed: key } : refuse(refusals[result])
  }

  /** Notes what an active agent did. Returns at once; is stored soon, and may quarantine the agent. */
  recordTrust(id: string, cause: TrustCause, requestId: string | null) {
    const agent = this.get(id)
    // Only active agents gain or lose trust.
    if (agent?.status === 'Active') this.#trust.note(agent, cause, requestId)
  }

  /** Stores the changes of trust that are noted. For shutdown. */
  flush() {
    return this.#trust.flush()
  }

  async #change(id: string, fields: AgentChange, { action, by, from }: StatusChange): Promise<AgentRecord | Refusal> {
    const key = id.toLowerCase()
    const result = await this.#options.store.agents.update(key, fields, this.#entry(action, key, by), from)
    if (result === 'subjectTaken') return refuseSubject()
    return typeof result === 'string' ? refuse(refusals[result]) : result
  }

  #entry(action: string, subject: string, by: By, details: AuditEntry['details'] = {}): AuditEntry {
    return { at: this.#options.clock.now(), ...by, action, subject, details }
  }
}

const refusals = { notFound: 'not_found', wrongState: 'wrong_state', lastAdmin: 'last_admin' } as const

const refuseSubject = (): Refusal => refuse('already_exists', 'Another agent is bound to this external subject.')

/**
 * Called for an agent that was added or changed; undefined when it was removed. The change is answered when the promise
 * that it returns, if any, is resolved. It must not throw.
 */
export type AgentListener = (id: string, agent: AgentRecord | undefined, before: AgentRecord | undefined) => unknown

export interface IndexedKey extends AgentKey {
  readonly agentId: string
}

/** All agents in memory. A follower of the feed. */
export type Snapshot = ReturnType<typeof createSnapshot>

export function createSnapshot(agents: readonly AgentRecord[] = []) {
  const byId = new Map<string, AgentRecord>()
  const idOfSubject = new Map<string, string>()
  const keys = new Map<string, IndexedKey>()
  const listeners = new Set<AgentListener>()
  // Sorted when it is first read after a change: cheaper than keeping it sorted.
  let inOrder: readonly AgentRecord[] | undefined
  const values = () => {
    inOrder ??= [...byId.values()].sort(byRegistration)
    return inOrder
  }

  function change(id: string, agent: AgentRecord | undefined): Promise<unknown> | undefined {
    const before = byId.get(id)
    if (before?.externalSubject != null && idOfSubject.get(before.externalSubject) === id)
      idOfSubject.delete(before.externalSubject)
    for (const { hash } of before?.keys ?? []) keys.delete(hash)
    if (agent === undefined) byId.delete(id)
    else {
      if (agent.externalSubject !== null) idOfSubject.set(agent.externalSubject, id)
      for (const key of agent.keys) keys.set(key.hash, { ...key, agentId: id })
      byId.set(id, agent)
    }
    inOrder = undefined
    const waits = [...listeners].map(listener => listener(id, agent, before)).filter(wait => wait instanceof Promise)
    return waits.length === 0 ? undefined : Promise.all(waits)
  }

  function load(all: readonly AgentRecord[]): Promise<unknown> | undefined {
    const ids = new Set(all.map(({ id }) => id))
    const removed = [...byId.keys()].filter(id => !ids.has(id))
    const changed = all.filter(agent => !isDeepStrictEqual(agent, byId.get(agent.id)))
    return Promise.all([...removed.map(id => change(id, undefined)), ...changed.map(agent => change(agent.id, agent))])
  }

  for (const agent of agents) void change(agent.id, agent)

  return {
    /** Finds an agent by its UUID in any letter case. Ids in our own tokens are lower case already. */
    get: (id: string) => byId.get(id) ?? byId.get(id.toLowerCase()),
    byKeyHash: (hash: string) => keys.get(hash),
    /** The agent bound to this subject of the external identity provider. */
    bySubject: (subject: string) => byId.get(idOfSubject.get(subject) ?? ''),
    /** In the order of registration. */
    values,
    change,
    load,
    /** Calls the listener for each change from now on, once it is visible. Returns a function that unsubscribes. */
    subscribe(listener: AgentListener): () => void {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Ids settle the order of agents registered in the same millisecond, so that it is the same after a restart. */
const byRegistration = (a: AgentRecord, b: AgentRecord): number => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)
