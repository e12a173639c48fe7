/**
 * Lists of what has piled up for years. A page reads a bounded number of rows, however many there are and whatever is asked
 * for: the newest of those that an index finds. The rest is asked for with the place where they end.
 *
 * The conditions are comparisons of the columns of that index, in its order, and so is the order of the rows: with equality
 * another index could have the same order, and an engine that misjudges how rare a value is would read all of it. A look
 * reads the index alone; other filters are asked of one row after the other (`column`), so that no engine joins the tables.
 */
import { type RawBuilder, sql } from 'kysely'

/** Rows that one page looks at. */
export const maxLookedAt = 5_000

/** The same where a plan is made: a limit that is not known then may be all rows. */
export const lookLimit = sql.lit(maxLookedAt)

/** Rows where a look ends: two when there are more. */
export const lookEnd = { limit: 2, offset: maxLookedAt - 1 }

/** `keys`, filled up to `count`: lists of one length are one statement. */
export function filledUp<K>(keys: readonly K[], count: number): readonly K[] {
  return [...keys, ...Array.from({ length: count - keys.length }, () => keys[0]!)]
}

/** The last row of a look that does not look at all of them. */
export const endOf = <T>(rows: readonly T[]): T | undefined => (rows.length === lookEnd.limit ? rows[0] : undefined)

type SqlValues = readonly (string | number)[]

/** A stretch of an index, by values of its first columns. */
export interface Stretch {
  readonly columns: readonly string[]
  /** Included. Empty: without a bound. */
  readonly lowest: SqlValues
  /** Not included unless it is `prefix`. */
  readonly below: SqlValues
  /** What all rows have in the first columns. */
  readonly prefix: SqlValues
}

/** Whether a row is in the stretch: one bound at each end, since an engine may use only one. */
export function within({ columns, lowest, below, prefix }: Stretch): readonly RawBuilder<boolean>[] {
  const isWhole = below.length === prefix.length
  return [compare(columns, '>=', lowest), compare(columns, isWhole ? '<=' : '<', below)].flat()
}

function compare(columns: readonly string[], operator: string, values: SqlValues): readonly RawBuilder<boolean>[] {
  if (values.length === 0) return []
  const names = sql.join(columns.slice(0, values.length).map(column => sql.ref(column)))
  return [sql<boolean>`(${names}) ${sql.raw(operator)} (${sql.join(values)})`]
}
