import type { SecureContext } from 'node:tls'
import type { Authority } from './authority.ts'
import { createLeafs, type LeafParts, type Leafs } from './leafs.ts'

/** Leafs of the authority that is in use: after a rotation, those of the new one. */
export class CurrentLeafs implements Leafs {
  readonly #parts: Omit<LeafParts, 'authority'>
  readonly #current: () => Authority
  #authority: Authority
  #leafs: Leafs
  /** Those of the authority in use, while they are prepared. */
  #next: Promise<Leafs> | undefined
  /** Made by the authorities before. */
  #mintedBefore = 0

  private constructor(parts: Omit<LeafParts, 'authority'>, current: () => Authority, leafs: Leafs) {
    this.#parts = parts
    this.#current = current
    this.#authority = current()
    this.#leafs = leafs
  }

  static async open(parts: Omit<LeafParts, 'authority'>, current: () => Authority): Promise<CurrentLeafs> {
    return new CurrentLeafs(parts, current, await createLeafs({ ...parts, authority: current() }))
  }

  get minted(): number {
    return this.#mintedBefore + this.#leafs.minted
  }

  permits(host: string): boolean {
    return this.#current().permits(host)
  }

  contextFor(host: string, agentId: string): SecureContext | Promise<SecureContext> {
    if (this.#authority !== this.#current()) this.#renew()
    if (this.#next === undefined) return this.#leafs.contextFor(host, agentId)
    return this.#next.then(leafs => leafs.contextFor(host, agentId))
  }

  #renew(): void {
    const authority = this.#current()
    this.#authority = authority
    const next = createLeafs({ ...this.#parts, authority }).then(leafs => {
      if (this.#next === next) this.#take(leafs)
      return leafs
    })
    this.#next = next
  }

  #take(leafs: Leafs): void {
    this.#mintedBefore += this.#leafs.minted
    this.#leafs = leafs
    this.#next = undefined
  }
}
