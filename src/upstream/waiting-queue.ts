import { UpstreamBusyError, type UpstreamHandler, type UpstreamRequest } from './handler.ts'
import type { Resolution } from './resolve.ts'

/** A request on its way to a connection. */
export interface Sending {
  /** The addresses that were checked for it; those of its connection may be a later request's. */
  readonly resolution: Resolution
  readonly request: UpstreamRequest
  readonly handler: UpstreamHandler
}

/** One that waits for a connection. */
export interface Waiter extends Sending {
  /** Steady milliseconds. */
  readonly since: number
}

/** Requests that wait for a connection to one origin: in order for each agent, and agents take turns. */
export class WaitingQueue {
  /** By agent. The one that was served last stands at the end. */
  readonly #agents = new Map<string, Waiter[]>()
  /** How many requests wait. Others only read it. */
  length = 0

  /** How many requests of the same agent wait. */
  of({ agentId = '' }: UpstreamRequest): number {
    return this.#agents.get(agentId)?.length ?? 0
  }

  push(waiter: Waiter): void {
    const { agentId = '' } = waiter.request
    const before = this.#agents.get(agentId)
    if (before === undefined) this.#agents.set(agentId, [waiter])
    else before.push(waiter)
    this.length += 1
  }

  /**
   * The first request of the agent that uses the fewest connections; of several, the one that was not served for longest.
   *
   * @param used connections by agent
   * @param maxEach an agent that uses as many is not served
   */
  next(used: ReadonlyMap<string, number>, maxEach: number): Waiter | undefined {
    let fewest = maxEach
    let next: Waiter | undefined
    for (const [agentId, waiters] of this.#agents) {
      const count = used.get(agentId) ?? 0
      if (count >= fewest) continue
      fewest = count
      next = waiters[0]
    }
    return next
  }

  /** Takes a request out of the line that was served, or is not to be. False: it does not wait. */
  remove(handler: UpstreamHandler, { agentId = '' }: Pick<UpstreamRequest, 'agentId'>): boolean {
    const waiters = this.#agents.get(agentId)
    const index = waiters?.findIndex(waiter => waiter.handler === handler) ?? -1
    if (waiters === undefined || index < 0) return false
    waiters.splice(index, 1)
    this.length -= 1
    this.#agents.delete(agentId)
    if (waiters.length > 0) this.#agents.set(agentId, waiters)
    return true
  }

  /** Takes out all that have waited since before `oldest`. */
  expire(oldest: number): readonly Waiter[] {
    const expired = [...this.#agents.values()].flatMap(waiters => waiters.filter(({ since }) => since < oldest))
    for (const { handler, request } of expired) this.remove(handler, request)
    return expired
  }
}

export function refuseAll(waiters: readonly Waiter[]): void {
  for (const { handler } of waiters) handler.onResponseError(new UpstreamBusyError())
}
