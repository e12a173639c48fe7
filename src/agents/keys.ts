import { randomBytes, randomUUID } from 'node:crypto'
import { hashKey, keyPrefix } from '../base/agent-key.ts'
import { type Refusal, refuse } from '../base/refusals.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AgentKey, AuditEntry, Store } from '../storage/store.ts'
import type { By, Registry } from './registry.ts'

const maxKeys = 20
/** Uses are stored this often, milliseconds, and so many in one transaction. */
const storeEveryMs = 60_000
const atOnce = 200

/** What is shown of a key, which is never the key itself. Times are milliseconds since the epoch. */
export interface ShownKey extends Omit<AgentKey, 'hash'> {
  readonly lastUsedAt: number | null
}

export interface KeyTerms {
  /** UUID; random when absent. */
  readonly id?: string
  readonly name: string
  readonly expiresAt: number | null
}

/** The keys of agents. Methods that change something reject with StoreError when the store fails. */
export type AgentKeys = ReturnType<typeof createAgentKeys>

export interface AgentKeysParts {
  readonly store: Pick<Store, 'agents'>
  readonly clock: Clock
  readonly registry: Pick<Registry, 'get' | 'values'>
  readonly onError: (error: unknown) => void
}

export function createAgentKeys({ store, clock, registry, onError }: AgentKeysParts) {
  let used = new Map<string, number>()

  const entry = (action: string, subject: string, { id: keyId, name, expiresAt }: AgentKey, by: By): AuditEntry => {
    const until = expiresAt === null ? null : new Date(expiresAt).toISOString()
    return { at: clock.now(), ...by, action, subject, details: { keyId, name, expiresAt: until } }
  }

  const flush = async (): Promise<void> => {
    if (used.size === 0) return
    const noted = [...used].map(([keyId, at]) => ({ keyId, at }))
    used = new Map()
    // One long transaction would delay other writes.
    for (let i = 0; i < noted.length; i += atOnce) await store.agents.noteKeyUses(noted.slice(i, i + atOnce))
  }

  const timer = setInterval(() => void flush().catch(onError), storeEveryMs).unref()

  return {
    /** `key` is the key itself. No later answer contains it. */
    async create(
      agentId: string,
      terms: KeyTerms,
      by: By,
    ): Promise<{ readonly key: string; readonly shown: ShownKey } | Refusal> {
      const text = keyPrefix + randomBytes(32).toString('base64url')
      const key: AgentKey = { id: randomUUID(), ...terms, hash: hashKey(text), createdAt: clock.now() }
      const id = agentId.toLowerCase()
      const added = await store.agents.addKey(id, key, maxKeys, entry('agent.addKey', id, key, by))
      return added === 'stored' ? { key: text, shown: shownKey(key, undefined) } : refuse(refusals[added])
    },
    async list(agentId: string): Promise<readonly ShownKey[] | Refusal> {
      const agent = registry.get(agentId)
      if (agent === undefined) return refuse('not_found')
      const uses = new Map((await store.agents.keyUses(agent.id)).map(({ keyId, at }) => [keyId, at]))
      return agent.keys.map(key => shownKey(key, used.get(key.id) ?? uses.get(key.id)))
    },
    /** Revokes a key. When it resolves no thread accepts the key any more. */
    async revoke(keyId: string, by: By): Promise<Refusal | undefined> {
      const agent = registry.values().find(({ keys }) => keys.some(({ id }) => id === keyId))
      const key = agent?.keys.find(({ id }) => id === keyId)
      if (agent === undefined || key === undefined) return refuse('not_found')
      const removed = await store.agents.removeKey(agent.id, keyId, entry('agent.removeKey', agent.id, key, by))
      return removed ? undefined : refuse('not_found')
    },
    /** Returns at once; the use is stored later. */
    noteUse: (keyId: string, at: number) => void used.set(keyId, at),
    /** Stores the uses that were noted. */
    flush,
    async close() {
      clearInterval(timer)
      await flush().catch(onError)
    },
  }
}

const refusals = {
  notFound: 'not_found',
  exists: 'already_exists',
  wrongState: 'wrong_state',
  full: 'too_many_keys',
} as const

function shownKey({ id, name, createdAt, expiresAt }: AgentKey, lastUsedAt: number | undefined): ShownKey {
  return { id, name, createdAt, expiresAt, lastUsedAt: lastUsedAt ?? null }
}
