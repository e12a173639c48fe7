/** Budgets in the storage contract. */
import type { SpendAnswer, SpendAsk, SpendRow } from '../limits/spend-lease.ts'
import type { AuditEntry, Page, Paged } from './audit.ts'
import type { EventNote } from './events.ts'

/** A budget in one window, whoever has it. */
export type SpendWindow = Pick<SpendRow, 'budget' | 'from'>

/** What gateways have told. Whole numbers: calls, tokens, or money in billionths. */
interface SpendSums {
  readonly spent: number
  /** The part of `spent` that was estimated. */
  readonly estimated: number
  readonly calls: number
}

/** A budget of one holder in one window. */
export interface StoredSpend extends SpendRow, SpendSums {
  /** Added to the limit. */
  readonly raised: number
  /** What gateways may spend beyond what they have told. */
  readonly leased: number
}

/** Adds to the limit of one holder, for one window. */
export interface SpendRaise extends SpendRow {
  /** Counts once. */
  readonly id: string
  /** Above 0. */
  readonly amount: number
  /** All raises of this row must not add more than this. */
  readonly max: number
}

/** People are told about a row. 1: it is nearly spent; 2: it is used up. */
export interface SpendNotice extends SpendRow {
  readonly level: 1 | 2
}

/** The raise of an approval: it counts when that claims the request. */
export interface ClaimedRaise {
  readonly terms: SpendRaise
  readonly entry: AuditEntry
}

/** `repeated`: a raise with its id has counted. `tooMuch`: it would exceed `max`. Only `raised` has changed anything. */
export type Raised = 'raised' | 'repeated' | 'tooMuch'

/** A budget in one window, of all who have one. */
export interface SpendTotals extends SpendWindow, SpendSums {
  readonly holders: number
  /** The largest part that anybody has spent of their limit and its raises; null: there is no limit. */
  readonly highestShare: number | null
}

/** Totals, and rows that are in them as they are here, in any order. */
export interface SpendOverview {
  readonly totals: readonly SpendTotals[]
  readonly rows: readonly (SpendRow & Pick<StoredSpend, 'spent' | 'raised'>)[]
}

export interface LimitedWindow extends SpendWindow {
  /** Of each who has the budget; undefined: it is only counted. */
  readonly limit: number | undefined
}

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
  /** A page of those who have the budget: who has spent most comes first. */
  list(window: SpendWindow, page: Page): Promise<Paged<StoredSpend>>
  /** Those of these rows that are there, in any order. */
  find(rows: readonly SpendRow[]): Promise<readonly StoredSpend[]>
  /** Windows in which nobody has called are missing. @param rows those to read at the same moment */
  totals(windows: readonly LimitedWindow[], rows: readonly SpendRow[]): Promise<SpendOverview>
  /** False: they were told before, by any gateway. */
  notify(notice: SpendNotice, entry: AuditEntry, event: EventNote): Promise<boolean>
  raise(raise: SpendRaise, entry: AuditEntry): Promise<Raised>
  /** Removes windows that were over before that time, milliseconds since the epoch. */
  prune(before: number): Promise<void>
}
