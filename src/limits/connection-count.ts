/** Limits open connections: of all peers together, and of each peer. */
import type { SharedAmount } from './shared-amount.ts'

export interface ConnectionLimits {
  /** Of all peers together. */
  readonly all: number
  /** Of one peer; 0 is no limit. */
  readonly perPeer: number
}

export interface ConnectionCount {
  /**
   * Counts a connection if there is room for it. Returns the limit that leaves none, undefined when it is counted.
   *
   * @param peer who it is counted for; undefined: in the total alone
   */
  enter(peer: string | undefined): 'connections' | 'address_connections' | undefined
  /** Each that entered leaves once. */
  leave(peer: string | undefined): void
}

/** Key of the total. No peer is called so. */
const total = '*'

export function createConnectionCount({ all, perPeer }: ConnectionLimits, open: SharedAmount): ConnectionCount {
  const isCounted = (peer: string | undefined): peer is string => peer !== undefined && perPeer > 0
  return {
    enter(peer) {
      if (!open.take(total, 1, all)) return 'connections'
      if (!isCounted(peer) || open.take(peer, 1, perPeer)) return undefined
      open.give(total, 1)
      return 'address_connections'
    },
    leave(peer) {
      open.give(total, 1)
      if (isCounted(peer)) open.give(peer, 1)
    },
  }
}
