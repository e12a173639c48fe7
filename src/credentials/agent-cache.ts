/** Entries of agents: what one agent has takes no place from another, until all are full. */
export class AgentCache<V extends { readonly endsAt: number }> {
  /** Agents, and the entries of each, from the one that was used least recently. */
  readonly #agents = new Map<string, Map<string, V>>()
  readonly #perAgent: number
  readonly #maxAgents: number

  constructor({ perAgent, agents }: { readonly perAgent: number; readonly agents: number }) {
    this.#perAgent = perAgent
    this.#maxAgents = agents
  }

  get(agentId: string, key: string): V | undefined {
    const entries = this.#agents.get(agentId)
    const found = entries?.get(key)
    if (entries === undefined || found === undefined) return undefined
    moveToEnd(this.#agents, agentId, entries)
    moveToEnd(entries, key, found)
    return found
  }

  set(agentId: string, key: string, value: V): void {
    const entries = this.#agents.get(agentId) ?? new Map<string, V>()
    moveToEnd(this.#agents, agentId, entries)
    moveToEnd(entries, key, value)
    dropFirst(entries, this.#perAgent)
    dropFirst(this.#agents, this.#maxAgents)
  }

  forget(agentId: string): void {
    this.#agents.delete(agentId)
  }

  /** Forgets what has ended. @param now milliseconds since the epoch */
  sweep(now: number): void {
    for (const [agentId, entries] of this.#agents) {
      for (const [key, { endsAt }] of entries) if (endsAt <= now) entries.delete(key)
      if (entries.size === 0) this.#agents.delete(agentId)
    }
  }
}

function moveToEnd<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
}

function dropFirst(map: Map<string, unknown>, max: number): void {
  for (const key of map.keys()) {
    if (map.size <= max) return
    map.delete(key)
  }
}
