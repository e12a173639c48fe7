import type { AgentRecord } from '../storage/store.ts'

/** Tells other threads of changed agents, in the order of the changes. */
export interface Telling {
  /** `undefined` for an agent that is gone. Returns at once. */
  tell(id: string, agent: AgentRecord | undefined): void
  /** Resolves when every thread has heard of what changed so far. Rejects when one could not be told. */
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
      // What waits for this change waits for those before it as well.
      const telling = Promise.all([underway.get(id), onChange(id, agent)]).finally(() => {
        if (underway.get(id) === telling) underway.delete(id)
      })
      // Who made the change hears of a failure by `told`.
      telling.catch(() => undefined)
      underway.set(id, telling)
    },
    told: async id => underway.get(id),
    idle: () => Promise.allSettled(underway.values()),
  }
}
