import type { Egress } from '../upstream/egress.ts'
import type { Fleet } from './fleet.ts'

export interface PeerGuardParts {
  readonly fleet: Pick<Fleet, 'others'>
  readonly upstreams: { readonly egress: Pick<Egress, 'setPeers'> }
  /** The other threads. */
  readonly followers: { readonly pool: { changePeers(urls: readonly string[]): Promise<void> } | undefined }
}

/**
 * Keeps agents from reaching the other gateways through this one, as they cannot reach this one. The guard knows a gateway
 * that joins about a second later: it must be called after one of the next turns.
 */
export function createPeerGuard({ fleet, upstreams, followers }: PeerGuardParts): () => void {
  let known = ''
  return () => {
    const urls = fleet.others()
    const now = urls.join(' ')
    if (now === known) return
    known = now
    upstreams.egress.setPeers(urls)
    void followers.pool?.changePeers(urls)
  }
}
