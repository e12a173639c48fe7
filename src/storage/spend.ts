/** Budgets in the storage contract. */
import type { SpendAnswer, SpendAsk } from '../limits/spend-lease.ts'

export interface SpendTable {
  /**
   * Takes reports of this gateway on what it spent, and leases it more. Answers come in any order.
   *
   * @param gateways how many share what is left
   */
  lease(asks: readonly SpendAsk[], gateways: number): Promise<readonly SpendAnswer[]>
  /**
   * What gateways that are gone have leased and never reported counts as spent. Returns how many leases that were.
   *
   * @param gateways their ids; `all`: no gateway runs
   */
  forfeit(gateways: readonly string[] | 'all'): Promise<number>
  /** Removes windows that were over before that time, milliseconds since the epoch. */
  prune(before: number): Promise<void>
}
