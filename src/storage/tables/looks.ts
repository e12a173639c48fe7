/**
 * Lists of what has piled up for years. A page reads a bounded number of rows, however many there are and whatever is asked
 * for: the newest of those that an index finds. The rest is asked for with the place where they end.
 *
 * The conditions are comparisons of the columns of that index, in its order, and so is the order of the rows: with equality
 * another index could have the same order, and an engine that misjudges how rare a value is would read all of it. A look
 * reads the index alone; other filters are asked of one row after the other (`column`), so that no engine joins the tables.
 */
import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { Db, Schema } from '../schema.ts'
import type { Looked, Page } from '../store.ts'

/** Rows that one page looks at. */
export const maxLookedAt = 5_000

/** The same where a plan is made: a limit that is not known then may be all rows. */
export const lookLimit = sql.lit(maxLookedAt)

interface Look<Key extends string, Place extends Record<Key, unknown>, Row> {
  /** Places of the rows that the index finds, in its order. */
  readonly found: SelectQueryBuilder<Schema, never, Place>
  /** Conditions on `looked` that the index does not answer. */
  readonly rest: readonly RawBuilder<boolean>[]
  /** Columns of the order, the key last: the latest comes first. */
  readonly order: readonly [string, Key]
  /** The rows with these keys, in any order. */
  readonly read: (keys: readonly Place[Key][]) => Promise<readonly Row[]>
}

/** A page of the newest rows that an index finds, and how many of them match. */
export async function look<Key extends string, Place extends Record<Key, unknown>, Row extends Record<Key, unknown>>(
  db: Db,
  { page, pageSize }: Page,
  { found, rest, order, read }: Look<Key, Place, Row>,
): Promise<Looked<Row, Place>> {
  const end = found.limit(2).offset(maxLookedAt - 1)
  const [last, more] = await end.execute()
  const next = (more && last) ?? null
  const matching = sql`(${found.limit(lookLimit)}) as looked where ${sql.join([sql`true`, ...rest], sql` and `)}`
  const count = sql<{ total: number }>`select count(*) as total from ${matching}`
  const isFull = next !== null && rest.length === 0
  const totalCount = isFull ? maxLookedAt : Number((await count.execute(db)).rows[0]?.total)
  const offset = (page - 1) * pageSize
  const size = Math.min(pageSize, maxLookedAt - offset)
  if (size <= 0) return { items: [], totalCount, next }
  const inOrder = sql.join(order.map(column => sql`${sql.ref(column)} desc`))
  const some = sql<Place>`select * from ${matching} order by ${inOrder} limit ${size} offset ${offset}`
  const places = rest.length === 0 ? found.limit(size).offset(offset).execute() : (await some.execute(db)).rows
  const [, key] = order
  const keys = (await places).map(place => place[key])
  const rows = keys.length === 0 ? [] : await read(filledUp(keys, size))
  const byKey = new Map<unknown, Row>(rows.map(row => [row[key], row]))
  return { items: keys.flatMap(one => byKey.get(one) ?? []), totalCount, next }
}

/** `keys`, filled up to `count`: lists of one length are one statement. */
function filledUp<K>(keys: readonly K[], count: number): readonly K[] {
  return [...keys, ...Array.from({ length: count - keys.length }, () => keys[0]!)]
}

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
