/** What a gateway does when the database has lost history: all stop until people accept it, or it goes on by itself. */
import type { ClientBase } from 'pg'
import type { Clock } from '../../runtime/clock.ts'
import { acceptHistory } from './accept.ts'
import type { DatabaseConnections } from './connection.ts'
import type { FoundHistory, StoreHistory } from './history.ts'

export interface LossOptions {
  /** Whether to go on at once; otherwise no gateway serves until people accept the loss. */
  readonly accept: boolean
  /** Called once for each loss. */
  readonly onLost: (what: string) => void
  /** Called when the loss was accepted, here or elsewhere. */
  readonly onAccepted: () => void
}

export interface LossParts {
  readonly connections: DatabaseConnections
  readonly clock: Clock
  readonly history: StoreHistory
}

export function createLossHandler({ connections, clock, history }: LossParts, options: LossOptions) {
  let isReported = false
  return {
    async lose(client: Pick<ClientBase, 'query'>, { epoch, lost }: FoundHistory): Promise<void> {
      const why = history.lost ?? ''
      if (!isReported) options.onLost(why)
      isReported = true
      if (options.accept) await acceptHistory(connections, { epoch, why, now: clock.now() })
      // Those that know less of the past, and those that start, must not serve either.
      else if (lost === null) {
        await client.query('update fleet set lost = $1 where epoch = $2 and lost is null', [why, epoch])
      }
    },
    end(): void {
      if (isReported) options.onAccepted()
      isReported = false
    },
  }
}

/** Loss of history, and what to do about it. */
export const lostHistory = (what: string): string =>
  `The database has lost history: ${what}. Revocations may be gone, and requests that look unsent may have been sent. ` +
  'With Fleet:OnHistoryLoss Stop, no gateway serves until you run: agent-gateway fleet accept'
