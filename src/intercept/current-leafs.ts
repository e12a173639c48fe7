import type { Authority } from './authority.ts'
import { createLeafs, type LeafParts, type Leafs } from './leafs.ts'

export interface CurrentLeafs extends Leafs {
  /** Whether the authority may vouch for a host. */
  permits(host: string): boolean
}

/** Leafs of the authority that is in use: after a rotation, those of the new one. */
export async function openCurrentLeafs(
  parts: Omit<LeafParts, 'authority'>,
  current: () => Authority,
): Promise<CurrentLeafs> {
  let authority = current()
  let leafs = await createLeafs({ ...parts, authority })
  /** Those of the authority in use, while they are prepared. */
  let next: Promise<Leafs> | undefined
  /** Made by the authorities before. */
  let mintedBefore = 0

  function renew(): void {
    authority = current()
    const renewed = createLeafs({ ...parts, authority }).then(made => {
      if (next !== renewed) return made
      mintedBefore += leafs.minted
      leafs = made
      next = undefined
      return made
    })
    next = renewed
  }

  return {
    get minted() {
      return mintedBefore + leafs.minted
    },
    permits: host => current().permits(host),
    contextFor(host, agentId) {
      if (authority !== current()) renew()
      return next === undefined ? leafs.contextFor(host, agentId) : next.then(made => made.contextFor(host, agentId))
    },
  }
}
