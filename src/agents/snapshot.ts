import type { AgentRecord, Page, Paged } from '../storage/store.ts'

/** Called for an agent that was added or changed; undefined when it was removed. It must not throw. */
export type AgentListener = (id: string, agent: AgentRecord | undefined) => void

/** All agents in memory, in the order of their registration. */
export interface Snapshot {
  get(id: string): AgentRecord | undefined
  bySubject(subject: string): AgentRecord | undefined
  list(page: Page): Paged<AgentRecord>
  values(): readonly AgentRecord[]
  set(agent: AgentRecord): void
  delete(id: string): void
  /** Calls the listener for each change from now on, once it is visible. Returns a function that unsubscribes. */
  subscribe(listener: AgentListener): () => void
}

export function createSnapshot(agents: readonly AgentRecord[]): Snapshot {
  const byId = new Map<string, AgentRecord>()
  const idOfSubject = new Map<string, string>()
  const listeners = new Set<AgentListener>()
  // Sorted when it is first read after a change: cheaper than keeping it sorted.
  let inOrder: readonly AgentRecord[] | undefined
  const values = () => {
    inOrder ??= [...byId.values()].sort(byRegistration)
    return inOrder
  }

  function set(agent: AgentRecord): void {
    const subject = byId.get(agent.id)?.externalSubject
    if (subject != null) idOfSubject.delete(subject)
    if (agent.externalSubject !== null) idOfSubject.set(agent.externalSubject, agent.id)
    byId.set(agent.id, agent)
    inOrder = undefined
    for (const listener of listeners) listener(agent.id, agent)
  }

  for (const agent of agents) set(agent)

  return {
    // Ids in our own tokens are lower case already.
    get: id => byId.get(id) ?? byId.get(id.toLowerCase()),
    bySubject: subject => byId.get(idOfSubject.get(subject) ?? ''),
    list({ page, pageSize }) {
      const start = (page - 1) * pageSize
      return { items: values().slice(start, start + pageSize), totalCount: byId.size }
    },
    values,
    set,
    delete(id) {
      const subject = byId.get(id)?.externalSubject
      if (subject != null) idOfSubject.delete(subject)
      if (byId.delete(id)) inOrder = undefined
      for (const listener of listeners) listener(id, undefined)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Ids settle the order of agents registered in the same millisecond, so that it is the same after a restart. */
const byRegistration = (a: AgentRecord, b: AgentRecord): number => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)
