/**
 * Budgets on an engine that has one writer. PostgreSQL has functions for leases and for those that are forfeited
 * (`postgres/spend.ts`).
 */
import { type RawBuilder, sql } from 'kysely'
import { grantOf, maxSum, rowOf, type SpendAnswer, type SpendAsk, type SpendRow } from '../../limits/spend-lease.ts'
import type { Operations } from '../methods.ts'
import type { Db, SpendLeaseRow, SpendTotalRow } from '../schema.ts'
import { columns, statement } from '../statement.ts'
import type { LimitedWindow, Raised, SpendRaise, SpendWindow } from '../store.ts'
import type { Unit } from '../unit.ts'

/** The sums are held at the largest number that is read again. */
const held = (sum: number): number => Math.min(maxSum, sum)

const none = { spent: 0, estimated: 0, calls: 0 } as const

export const spend: Operations<'spend'> = {
  async lease(unit, asks, gateways) {
    const answers: SpendAnswer[] = []
    for (const ask of asks) answers.push(await leaseOne(unit, ask, gateways))
    return answers
  },

  async forfeit({ db }, gateways) {
    if (gateways.length === 0) return 0
    const all = db.selectFrom('spend_leases').selectAll().where('leased', '>', 0)
    const leases = await (gateways === 'all' ? all : all.where('gateway', 'in', gateways)).execute()
    for (const lease of leases) await forfeitOne(db, lease)
    return leases.length
  },

  async list(db, { budget, from }, { page, pageSize }) {
    const { count } = await db
      .selectFrom('spend')
      .where(inWindow({ budget, from }))
      .select(eb => eb.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    const items = await withLeases(db)
      .where(inWindow({ budget, from }))
      .orderBy('spent', 'desc')
      .orderBy('holder')
      .limit(pageSize)
      .offset((page - 1) * pageSize)
      .execute()
    return { items, totalCount: count }
  },

  async find(db, rows) {
    if (rows.length === 0) return []
    return withLeases(db).where(inAnyOf(rows, isRow)).execute()
  },

  async totals(db, windows, rows) {
    if (windows.length === 0) return { totals: [], rows: [] }
    const totals = db
      .selectFrom('spend')
      .where(inAnyOf(windows, inWindow))
      .select(['budget', 'from', sumOf('spent'), sumOf('estimated'), sumOf('calls')])
      .select(eb => eb.fn.countAll<number>().as('holders'))
      .select(sql<number | null>`max(${shareOf(windows)})`.as('highestShare'))
      .groupBy(['budget', 'from'])
    if (rows.length === 0) return { totals: await totals.execute(), rows: [] }
    // One statement: all that it reads is of one moment.
    const all = await db
      .selectFrom(totals.as('totals'))
      .select(['budget', 'from', 'spent', 'estimated', 'calls', 'holders', 'highestShare'])
      .select([
        sql<string | null>`cast(null as text)`.as('holder'),
        sql<number>`0`.as('until'),
        sql<number>`0`.as('raised'),
      ])
      .unionAll(
        db
          .selectFrom('spend')
          .where(inAnyOf(rows, isRow))
          .select(['budget', 'from', asDouble('spent'), asDouble('estimated'), asDouble('calls')])
          .select([sql<number>`1`.as('holders'), sql<number | null>`null`.as('highestShare')])
          .select(['holder', 'until', 'raised']),
      )
      .execute()
    return {
      totals: all.filter(({ holder }) => holder === null),
      rows: all.flatMap(({ holder, ...row }) => (holder === null ? [] : { ...row, holder })),
    }
  },

  async notify(unit, { level, holder, ...row }, entry, event) {
    const { numUpdatedRows } = await unit.db
      .updateTable('spend')
      .set({ notified: level })
      .where(isRow({ ...row, holder }))
      .where('notified', '<', level)
      .executeTakeFirst()
    if (Number(numUpdatedRows) === 0) return false
    unit.audit(entry)
    unit.event(event)
    return true
  },

  async raise(unit, raise, entry) {
    const outcome = await raiseLimit(unit.db, raise)
    if (outcome === 'raised') unit.audit(entry)
    return outcome
  },

  async prune({ db }, before) {
    await db.deleteFrom('spend_raises').where('until', '<', before).execute()
    await db.deleteFrom('spend_leases').where('until', '<', before).execute()
    await db.deleteFrom('spend').where('until', '<', before).execute()
  },
}

/** Each gateway asks once a second while it is used. */
async function leaseOne({ db, gateway }: Unit, ask: SpendAsk, gateways: number): Promise<SpendAnswer> {
  const row = rowOf(ask.key)
  const { leased: others, ...before } = await leasesOf(db, row, gateway)
  const reported = ask.begins ? none : before
  const total = await totalOf(db, row)
  const grown = {
    spent: held(total.spent + Math.max(0, ask.spent - reported.spent)),
    estimated: held(total.estimated + Math.max(0, ask.estimated - reported.estimated)),
    calls: held(total.calls + Math.max(0, ask.calls - reported.calls)),
  }
  const state = { spent: grown.spent, others, raised: total.raised }
  const leased = held(grantOf(ask, state, gateways))
  await putTotal(db, { ...row, ...grown, raised: 0 })
  // What was forfeited meanwhile was told for it.
  const sums = {
    spent: held(Math.max(reported.spent, ask.spent)),
    estimated: held(Math.max(reported.estimated, ask.estimated)),
    calls: held(Math.max(reported.calls, ask.calls)),
  }
  await putLease(db, { ...row, gateway, leased, ...sums })
  return { key: ask.key, leased, ...state }
}

const rowNames = ['budget', 'from', 'until', 'holder'] as const
const sumNames = ['spent', 'estimated', 'calls'] as const

const putTotal = statement((db, row: Omit<SpendTotalRow, 'notified'>) =>
  db
    .insertInto('spend')
    .values(columns(row, [...rowNames, ...sumNames, 'raised']))
    .onConflict(of => of.columns(['budget', 'from', 'holder']).doUpdateSet(columns(row, sumNames))),
)

const putLease = statement((db, row: SpendLeaseRow) =>
  db
    .insertInto('spend_leases')
    .values(columns(row, [...rowNames, ...sumNames, 'gateway', 'leased']))
    .onConflict(of =>
      of.columns(['budget', 'from', 'holder', 'gateway']).doUpdateSet(columns(row, [...sumNames, 'leased'])),
    ),
)

const selectTotal = statement((db, { budget, from, holder }: SpendRow) =>
  db
    .selectFrom('spend')
    .select([...sumNames, 'raised'])
    .where(isRow({ budget, from, holder })),
)

async function totalOf(db: Db, row: SpendRow): Promise<Omit<SpendTotalRow, keyof SpendRow | 'notified'>> {
  const { rows } = await selectTotal(db, row)
  return rows[0] ?? { ...none, raised: 0 }
}

const selectLeases = statement((db, { budget, from, holder }: SpendRow) =>
  db
    .selectFrom('spend_leases')
    .select(['gateway', 'leased', ...sumNames])
    .where(isRow({ budget, from, holder })),
)

/** What this gateway has told, and what the others have leased. */
async function leasesOf(db: Db, row: SpendRow, gateway: string) {
  const { rows } = await selectLeases(db, row)
  const own = rows.find(lease => lease.gateway === gateway)
  const leased = rows.reduce((sum, lease) => sum + (lease === own ? 0 : lease.leased), 0)
  return { ...(own ?? none), leased }
}

/** It is told, too: a gateway that comes back is not charged twice. */
async function forfeitOne(db: Db, { budget, from, holder, gateway, ...lease }: SpendLeaseRow): Promise<void> {
  const { leased } = lease
  await db
    .updateTable('spend_leases')
    .set({ leased: 0, spent: held(lease.spent + leased), estimated: held(lease.estimated + leased) })
    .where(isRow({ budget, from, holder }))
    .where('gateway', '=', gateway)
    .execute()
  const { spent, estimated } = await totalOf(db, { budget, from, holder, until: lease.until })
  await db
    .updateTable('spend')
    .set({ spent: held(spent + leased), estimated: held(estimated + leased) })
    .where(isRow({ budget, from, holder }))
    .execute()
}

/** Adds to the limit of a row. All of it is in the transaction that `db` is in. */
export async function raiseLimit(db: Db, { id, amount, max, ...row }: SpendRaise): Promise<Raised> {
  const { budget, holder, from, until } = row
  const inserted = await db
    .insertInto('spend_raises')
    .values({ id, budget, holder, from, until, amount })
    .onConflict(of => of.column('id').doNothing())
    .executeTakeFirst()
  if (Number(inserted.numInsertedOrUpdatedRows) === 0) return 'repeated'
  await db
    .insertInto('spend')
    .values({ budget, holder, from, until, ...none, raised: 0 })
    .onConflict(of => of.columns(['budget', 'from', 'holder']).doNothing())
    .execute()
  const raised = await db
    .updateTable('spend')
    .set(eb => ({ raised: eb('raised', '+', amount) }))
    .where(isRow(row))
    .where('raised', '<=', max - amount)
    .executeTakeFirst()
  if (Number(raised.numUpdatedRows) > 0) return 'raised'
  await db.deleteFrom('spend_raises').where('id', '=', id).execute()
  return 'tooMuch'
}

/** A sum of many large integers is none: SQLite would throw. */
const sumOf = <C extends string>(column: C) => sql<number>`sum(${double(column)})`.as(column)
const asDouble = <C extends string>(column: C) => double(column).as(column)
const double = (column: string) => sql<number>`cast(${sql.ref(column)} as double precision)`

/** Part of its limit, with raises, that a row has spent; all of it where there is none to spend. */
const shareOf = (windows: readonly LimitedWindow[]): RawBuilder<number | null> =>
  sql`case when budget is null then null ${sql.join(
    windows.flatMap(({ budget, limit }) =>
      limit === undefined ? [] : [sql`when budget = ${budget} then ${spentOf(limit)}`],
    ),
    sql` `,
  )} end`

const spentOf = (limit: number) => {
  const all = sql`(cast(${limit} as double precision) + raised)`
  return sql`case when ${all} > 0 then cast(spent as double precision) / ${all} else 1 end`
}

const inWindow = ({ budget, from }: SpendWindow) => sql<boolean>`budget = ${budget} and "from" = ${from}`

const isRow = (row: Omit<SpendRow, 'until'>) => sql<boolean>`${inWindow(row)} and holder = ${row.holder}`

const inAnyOf = <T>(rows: readonly T[], matches: (row: T) => RawBuilder<unknown>): RawBuilder<boolean> =>
  sql<boolean>`(${sql.join(
    rows.map(row => sql`(${matches(row)})`),
    sql` or `,
  )})`

const withLeases = (db: Db) =>
  db
    .selectFrom('spend')
    .select(['budget', 'holder', 'from', 'until', 'spent', 'estimated', 'calls', 'raised'])
    .select(
      sql<number>`(select coalesce(sum(cast(l.leased as double precision)), 0) from spend_leases l
        where l.budget = spend.budget and l."from" = spend."from" and l.holder = spend.holder)`.as('leased'),
    )
