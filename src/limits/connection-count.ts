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
   * Counts a connection if there is room for it.
   *
   * @param peer who it is counted for; undefined: in the total alone
   */
  enter(peer: string | undefined): boolean
  /** Each that entered leaves once. */
  leave(peer: string | undefined): void
}

/** Key of the total. No peer is called so. */
const total = '*'

export function createConnectionCount({ all, perPeer }: ConnectionLimits, open: SharedAmount): ConnectionCount {
  const isCounted = (peer: string | undefined): peer is string => peer !== undefined && perPeer > 0
  return {
    enter(peer) {
      if (!open.take(total, 1, all)) return false
      if (!isCounted(peer) || open.take(peer, 1, perPeer)) return true
      open.give(total, 1)
      return false
    },
    leave(peer) {
      open.give(total, 1)
      if (isCounted(peer)) open.give(peer, 1)
    },
  }
}
