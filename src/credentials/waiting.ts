/** Places of those who wait, so that agents with much to wait for take none from the others. */

/** A place; it may be lost to an agent that has fewer. */
export type WaitingPlace = PromiseWithResolvers<undefined>

export class WaitingPlaces {
  readonly #max: number
  /** Agents that wait, and the places of each, oldest first. */
  readonly #ofAgents = new Map<string, Set<WaitingPlace>>()
  #taken = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Undefined when all places are taken, and no agent has two more than this one. */
  take(agentId: string): WaitingPlace | undefined {
    if (this.#taken >= this.#max && !this.#displace(agentId)) return undefined
    const place: WaitingPlace = Promise.withResolvers()
    const own = this.#ofAgents.get(agentId) ?? new Set()
    this.#ofAgents.set(agentId, own.add(place))
    this.#taken += 1
    return place
  }

  give(agentId: string, place: WaitingPlace): void {
    const own = this.#ofAgents.get(agentId)
    if (own?.delete(place) !== true) return
    this.#taken -= 1
    if (own.size === 0) this.#ofAgents.delete(agentId)
  }

  /** Takes the youngest place of the agent that has most. */
  #displace(agentId: string): boolean {
    const own = this.#ofAgents.get(agentId)?.size ?? 0
    const [id = '', largest] = [...this.#ofAgents].reduce((a, b) => (b[1].size > a[1].size ? b : a))
    const place = [...largest].at(-1)
    if (place === undefined || largest.size < own + 2) return false
    this.give(id, place)
    place.resolve(undefined)
    return true
  }
}
