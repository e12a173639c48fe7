import { isDeepStrictEqual } from 'node:util'
import type { FeedFollower } from '../storage/feed.ts'
import type { AgentKey, AgentRecord } from '../storage/store.ts'

/**
 * Called for an agent that was added or changed; undefined when it was removed. The change is answered when the promise
 * that it returns, if any, is resolved. It must not throw.
 */
export type AgentListener = (id: string, agent: AgentRecord | undefined, before: AgentRecord | undefined) => unknown

/** A key and the agent that has it. */
export interface IndexedKey extends AgentKey {
  readonly agentId: string
}

/** All agents in memory. A follower of the feed. */
export interface Snapshot extends FeedFollower<AgentRecord> {
  get(id: string): AgentRecord | undefined
  bySubject(subject: string): AgentRecord | undefined
  byKeyHash(hash: string): IndexedKey | undefined
  /** In the order of registration. */
  values(): readonly AgentRecord[]
  /** Calls the listener for each change from now on, once it is visible. Returns a function that unsubscribes. */
  subscribe(listener: AgentListener): () => void
}

export function createSnapshot(agents: readonly AgentRecord[] = []): Snapshot {
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
    // Ids in our own tokens are lower case already.
    get: id => byId.get(id) ?? byId.get(id.toLowerCase()),
    byKeyHash: hash => keys.get(hash),
    bySubject: subject => byId.get(idOfSubject.get(subject) ?? ''),
    values,
    change,
    load,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Ids settle the order of agents registered in the same millisecond, so that it is the same after a restart. */
const byRegistration = (a: AgentRecord, b: AgentRecord): number => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)
