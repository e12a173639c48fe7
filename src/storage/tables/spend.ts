/**
 * Budgets on an engine that has one writer. PostgreSQL has functions for leases and for those that are forfeited
 * (`postgres/spend.ts`).
 */
import { grantOf, maxSum, rowOf, type SpendAnswer, type SpendAsk, type SpendRow } from '../../limits/spend-lease.ts'
import type { Operations } from '../methods.ts'
import type { Db, SpendLeaseRow, SpendTotalRow } from '../schema.ts'
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

  async prune({ db }, before) {
    await db.deleteFrom('spend_leases').where('until', '<', before).execute()
    await db.deleteFrom('spend').where('until', '<', before).execute()
  },
}

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
  await db
    .insertInto('spend')
    .values({ ...row, ...grown, raised: 0 })
    .onConflict(of => of.columns(['budget', 'from', 'holder']).doUpdateSet(grown))
    .execute()
  // What was forfeited meanwhile was told for it.
  const lease = {
    leased,
    spent: held(Math.max(reported.spent, ask.spent)),
    estimated: held(Math.max(reported.estimated, ask.estimated)),
    calls: held(Math.max(reported.calls, ask.calls)),
  }
  await db
    .insertInto('spend_leases')
    .values({ ...row, gateway, ...lease })
    .onConflict(of => of.columns(['budget', 'from', 'holder', 'gateway']).doUpdateSet(lease))
    .execute()
  return { key: ask.key, leased, ...state }
}

async function totalOf(db: Db, { budget, from, holder }: SpendRow): Promise<Omit<SpendTotalRow, keyof SpendRow>> {
  const found = await db
    .selectFrom('spend')
    .select(['spent', 'estimated', 'calls', 'raised'])
    .where('budget', '=', budget)
    .where('from', '=', from)
    .where('holder', '=', holder)
    .executeTakeFirst()
  return found ?? { ...none, raised: 0 }
}

/** What this gateway has told, and what the others have leased. */
async function leasesOf(db: Db, { budget, from, holder }: SpendRow, gateway: string) {
  const rows = await db
    .selectFrom('spend_leases')
    .select(['gateway', 'leased', 'spent', 'estimated', 'calls'])
    .where('budget', '=', budget)
    .where('from', '=', from)
    .where('holder', '=', holder)
    .execute()
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
    .where('budget', '=', budget)
    .where('from', '=', from)
    .where('holder', '=', holder)
    .where('gateway', '=', gateway)
    .execute()
  const { spent, estimated } = await totalOf(db, { budget, from, holder, until: lease.until })
  await db
    .updateTable('spend')
    .set({ spent: held(spent + leased), estimated: held(estimated + leased) })
    .where('budget', '=', budget)
    .where('from', '=', from)
    .where('holder', '=', holder)
    .execute()
}
