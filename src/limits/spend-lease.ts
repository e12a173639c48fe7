/** Asks of a gateway to the rows of budgets in the store, and their answers. */

/** A budget of one holder in one window. */
export interface SpendRow {
  readonly budget: string
  /** Id of the agent, name of the owner or of the policy; `*` of all together. */
  readonly holder: string
  /** Window, milliseconds since the epoch. */
  readonly from: number
  readonly until: number
}

/**
 * All amounts are whole numbers: calls, tokens, or money in billionths. Sums of this gateway only grow while it has the row,
 * so an ask whose answer is lost may be made again.
 */
export interface SpendAsk {
  /** `keyOf` its row. */
  readonly key: string
  /** The gateway has no sums of this row yet. */
  readonly begins: boolean
  /** What calls of this gateway have spent. */
  readonly spent: number
  /** The part of it that was estimated. */
  readonly estimated: number
  readonly calls: number
  /** Leased before, and kept: calls may have reserved it before the answer comes. */
  readonly keep: number
  /** Of calls under way. */
  readonly reserved: number
  /** For calls that wait. */
  readonly needed: number
  /** The smallest of these calls: it passes when anything is left, even less than this. */
  readonly least: number
  /** For the next calls. */
  readonly ahead: number
  /** Undefined: it is only counted. */
  readonly limit: number | undefined
  /** Nothing may be leased beyond the limit. */
  readonly exact: boolean
}

/** A row as all gateways have made it. */
export interface SpendRowState {
  /** What all gateways have spent. */
  readonly spent: number
  /** What other gateways have leased. */
  readonly others: number
  /** Added to the limit for this window. */
  readonly raised: number
}

export interface SpendAnswer extends SpendRowState {
  readonly key: string
  /** What this gateway may spend beyond what it told. */
  readonly leased: number
}

/** The largest sum: beyond it numbers are not exact, and engines do not read them. */
export const maxSum = Number.MAX_SAFE_INTEGER

export const keyOf = ({ budget, from, until, holder }: SpendRow): string => `${budget} ${from} ${until} ${holder}`

/** The row of a key that `keyOf` wrote. */
export function rowOf(key: string): SpendRow {
  const [budget = '', from, until] = key.split(' ', 3)
  const holder = key.slice(`${budget} ${from} ${until} `.length)
  return { budget, holder, from: Number(from), until: Number(until) }
}

/** How much a gateway leases. @param gateways how many share what is left */
export function grantOf(ask: SpendAsk, { spent, others, raised }: SpendRowState, gateways: number): number {
  const { limit, keep, reserved, needed, least, ahead, exact } = ask
  if (limit === undefined) return keep
  const left = limit + raised - spent - others - reserved
  // A remainder that is too small for every call that waits is of no use here.
  if (left <= 0 || (exact && needed > 0 && left < least)) return keep
  // The last call passes although less than it needs is left.
  const fitting = exact ? left : Math.ceil(left / Math.max(1, least)) * Math.max(1, least)
  const waiting = Math.min(needed, fitting)
  const share = Math.floor(Math.max(0, left - waiting) / (4 * gateways))
  return Math.max(keep, reserved + waiting + Math.min(ahead, share))
}
