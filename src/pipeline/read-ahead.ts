/** How far the bodies of an agent are read ahead of the decisions on them. */
export interface ReadAhead {
  /** A whole body of the agent waits for its decision. */
  add(agentId: string, bytes: number): void
  /** It is decided, or its call is over. */
  remove(agentId: string, bytes: number): void
  /** True: enough bodies of the agent wait. Read nothing of this one; `resume` is called when it may be read. */
  isEnough(agentId: string, resume: () => void): boolean
  /** `resume` is not called any more. */
  forget(agentId: string, resume: () => void): void
}

interface Undecided {
  readonly agentId: string
  bytes: number
  /** Bodies that are read later. */
  readonly waiting: (() => void)[]
}

/**
 * Bodies come faster than they can be decided on. Those of an agent that has so many bytes undecided are left with its client:
 * read, they would wait all the same, and take memory meanwhile.
 *
 * A body waits only while others of its agent are whole and undecided, so never for a client or an upstream.
 */
export function createReadAhead(maxBytes: number): ReadAhead {
  // Not a Map, whose former tables would keep what waits alive (see SlotList).
  const agents: Undecided[] = []
  const of = (agentId: string) => agents.find(agent => agent.agentId === agentId)

  return {
    add(agentId, bytes) {
      const agent = of(agentId)
      if (agent === undefined) agents.push({ agentId, bytes, waiting: [] })
      else agent.bytes += bytes
    },
    remove(agentId, bytes) {
      const agent = of(agentId)
      if (agent === undefined) return
      agent.bytes -= bytes
      if (agent.bytes > 0) {
        if (agent.bytes < maxBytes) agent.waiting.shift()?.()
        return
      }
      // Each asks again. One alone could be slow to come, and nothing would call the others.
      agents.splice(agents.indexOf(agent), 1)
      for (const resume of agent.waiting) resume()
    },
    isEnough(agentId, resume) {
      const agent = of(agentId)
      if (agent === undefined || agent.bytes < maxBytes) return false
      if (!agent.waiting.includes(resume)) agent.waiting.push(resume)
      return true
    },
    forget(agentId, resume) {
      const { waiting = [] } = of(agentId) ?? {}
      const at = waiting.indexOf(resume)
      if (at >= 0) waiting.splice(at, 1)
    },
  }
}

/** Of this thread: some 10 ms of decisions. */
export const readAhead = createReadAhead(4 * 2 ** 20)
