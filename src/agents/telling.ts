import type { AgentRecord } from '../storage/store.ts'

/** Reports changed agents to the other threads, in the order of the changes. */
export interface Telling {
  /** `undefined` for an agent that is gone. Returns at once. */
  tell(id: string, agent: AgentRecord | undefined): void
  /** Resolves when every thread knows all changes so far. Rejects if one could not be reached. */
  told(id: string): Promise<unknown>
  /** Resolves when no thread is being told any more. */
  idle(): Promise<unknown>
}

/** @param onChange resolves when every thread has heard of the change */
export function createTelling(
  onChange: (id: string, agent: AgentRecord | undefined) => Promise<void> = async () => {},
): Telling {
  const underway = new Map<string, Promise<unknown>>()
  return {
    tell(id, agent) {
      // To wait for this change is to wait for earlier ones of the agent, too.
      const telling = Promise.all([underway.get(id), onChange(id, agent)]).finally(() => {
        if (underway.get(id) === telling) underway.delete(id)
      })
      // The caller learns of a failure by `told`.
      telling.catch(() => undefined)
      underway.set(id, telling)
    },
    told: async id => underway.get(id),
    idle: () => Promise.allSettled(underway.values()),
  }
}
