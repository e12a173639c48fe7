import type { Connection } from './connection.ts'
import type { Sending } from './waiting-queue.ts'

/** A request that has got its connection. */
export interface Posted extends Sending {
  readonly connection: Connection
}

/**
 * Hands requests to their connections together, in the check phase. All bytes that had arrived when this turn of the event
 * loop began are parsed by then, so that an unsolicited answer closes its connection instead of answering the next
 * request. (One more turn would cost 6 % of a request.)
 */
export class Outbox {
  readonly #refused: (posted: Posted) => void
  #posted: Posted[] = []

  /** @param refused called for a request whose connection has no more capacity */
  constructor(refused: (posted: Posted) => void) {
    this.#refused = refused
  }

  post(posted: Posted): void {
    posted.connection.agentId = posted.request.agentId ?? ''
    if (this.#posted.push(posted) === 1) setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    const all = this.#posted
    this.#posted = []
    for (const posted of all) if (!posted.connection.dispatch(posted.request, posted.handler)) this.#refused(posted)
  }
}
