import type { FinishedSpan } from './span.ts'

const shareOfAgent = 0.25

/** Counts the spans that wait, so that no agent keeps out those of others. */
export class FairShare {
  readonly #max: number
  readonly #ofAgent = new Map<string, number>()
  #waiting = 0

  constructor(max: number) {
    this.#max = max
  }

  /** False when there is no place for a span of this agent. */
  enter({ agentId }: Pick<FinishedSpan, 'agentId'>): boolean {
    const own = this.#ofAgent.get(agentId) ?? 0
    if (this.#waiting >= this.#max || own >= Math.max(1, this.#max * shareOfAgent)) return false
    this.#waiting += 1
    this.#ofAgent.set(agentId, own + 1)
    return true
  }

  leave(agentId: string): void {
    this.#waiting -= 1
    const left = (this.#ofAgent.get(agentId) ?? 1) - 1
    if (left === 0) this.#ofAgent.delete(agentId)
    else this.#ofAgent.set(agentId, left)
  }
}
