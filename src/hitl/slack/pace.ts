import type { Clock } from '../../runtime/clock.ts'
import { LRUCache } from '../../runtime/lru.ts'

const minute = 60_000
/** Accounts that are counted; of more, those that were quiet longest are forgotten. */
const maxAccounts = 1_000

/** So many turns of an account in a minute. */
export class Pace {
  readonly #clock: Pick<Clock, 'steady'>
  readonly #max: number
  readonly #taken = new LRUCache<string, { readonly since: number; count: number }>({ max: maxAccounts })

  constructor(clock: Pick<Clock, 'steady'>, max: number) {
    this.#clock = clock
    this.#max = max
  }

  take(account: string): boolean {
    const now = this.#clock.steady()
    const known = this.#taken.get(account)
    if (known === undefined || now >= known.since + minute) {
      this.#taken.set(account, { since: now, count: 1 })
      return true
    }
    known.count += 1
    return known.count <= this.#max
  }
}
