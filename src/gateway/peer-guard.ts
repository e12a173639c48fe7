import type { Clock } from '../runtime/clock.ts'
import type { Egress } from '../upstream/egress.ts'
import type { Fleet } from './fleet.ts'

export interface PeerGuardParts {
  readonly clock: Pick<Clock, 'steady'>
  readonly fleet: Pick<Fleet, 'others'>
  readonly upstreams: { readonly egress: Pick<Egress, 'setPeers'> }
  /** The other threads. */
  readonly followers: { readonly pool: { changePeers(urls: readonly string[]): Promise<void> } | undefined }
}

/**
 * A gateway that is late loses its row in the database, but it listens all the same and enters again: its addresses stay
 * refused for an hour. Later they may be those of another server.
 */
const keptMs = 3_600_000

/**
 * Keeps agents from reaching the other gateways through this one, as they cannot reach this one. The guard knows a gateway
 * that joins about a second later: it must be called after one of the next turns.
 */
export function createPeerGuard({ clock, fleet, upstreams, followers }: PeerGuardParts): () => void {
  /** URLs of other gateways, and when each was a member last, by the steady clock. */
  const listed = new Map<string, number>()
  let known = ''
  return () => {
    const now = clock.steady()
    for (const url of fleet.others()) listed.set(url, now)
    for (const [url, at] of listed) if (now - at > keptMs) listed.delete(url)
    const urls = [...listed.keys()].sort()
    const joined = urls.join(' ')
    if (joined === known) return
    known = joined
    upstreams.egress.setPeers(urls)
    void followers.pool?.changePeers(urls)
  }
}
