/** Limits the bytes of bodies that are held in memory: of all agents together, and of each. */
import type { SharedAmount } from './shared-amount.ts'

export interface HeldBytesLimits {
  readonly all: number
  readonly each: number
}

export interface HeldBytes {
  /** Adds bytes of an agent if there is room for them; else says which limit is reached, and adds nothing. */
  take(agentId: string, bytes: number): 'held_bytes' | 'agent_held_bytes' | undefined
  give(agentId: string, bytes: number): void
  /** Bytes that are held now, in all threads. */
  inAll(): number
}

/** Key of the total. No agent is called so. */
const total = '*'

export function createHeldBytes({ all, each }: HeldBytesLimits, held: SharedAmount): HeldBytes {
  return {
    take(agentId, bytes) {
      if (!held.take(agentId, bytes, each)) return 'agent_held_bytes'
      if (held.take(total, bytes, all)) return undefined
      held.give(agentId, bytes)
      return 'held_bytes'
    },
    give(agentId, bytes) {
      held.give(total, bytes)
      held.give(agentId, bytes)
    },
    inAll: () => held.of(total),
  }
}
