import type { Clock } from '../../runtime/clock.ts'
import { LRUCache } from '../../runtime/lru.ts'

const minute = 60_000
/** Accounts that are counted; of more, those that were quiet longest are forgotten. */
const maxAccounts = 1_000

/** Takes a turn of an account: false when it has had so many in this minute. */
export function createPace(clock: Pick<Clock, 'steady'>, max: number): (account: string) => boolean {
  const taken = new LRUCache<string, { readonly since: number; count: number }>({ max: maxAccounts })
  return account => {
    const now = clock.steady()
    const known = taken.get(account)
    const turns = known === undefined || now >= known.since + minute ? { since: now, count: 0 } : known
    turns.count += 1
    taken.set(account, turns)
    return turns.count <= max
  }
}
