import { grantOf, keyOf, rowOf, type SpendAnswer, type SpendAsk, type SpendRow } from '../../limits/spend-lease.ts'
import type { Operations } from '../methods.ts'
import type { Db, SpendLeaseRow, SpendTotalRow } from '../schema.ts'
import type { Unit } from '../unit.ts'

const none = { spent: 0, estimated: 0, calls: 0 } as const

export const spend: Operations<'spend'> = {
  async lease(unit, asks, gateways) {
    await unit.alone(...asks.map(({ key }) => lockOf(key)))
    const answers: SpendAnswer[] = []
    for (const ask of asks) answers.push(await leaseOne(unit, ask, gateways))
    return answers
  },

  async forfeit(unit, gateways) {
    if (gateways.length === 0) return 0
    const all = unit.db.selectFrom('spend_leases').select(['budget', 'from', 'until', 'holder', 'gateway'])
    const leases = await (gateways === 'all' ? all : all.where('gateway', 'in', gateways)).execute()
    await unit.alone(...leases.map(lease => lockOf(keyOf(lease))))
    let lost = 0
    for (const lease of leases) if (await forfeitOne(unit.db, lease)) lost += 1
    return lost
  },

  async prune({ db }, before) {
    await db.deleteFrom('spend_leases').where('until', '<', before).execute()
    await db.deleteFrom('spend').where('until', '<', before).execute()
  },
}

const lockOf = (key: string): string => `spend ${key}`

async function leaseOne({ db, gateway }: Unit, ask: SpendAsk, gateways: number): Promise<SpendAnswer> {
  const row = rowOf(ask.key)
  const { leased: others, ...before } = await leasesOf(db, row, gateway)
  const reported = ask.begins ? none : before
  const total = await totalOf(db, row)
  const grown = {
    spent: total.spent + Math.max(0, ask.spent - reported.spent),
    estimated: total.estimated + Math.max(0, ask.estimated - reported.estimated),
    calls: total.calls + Math.max(0, ask.calls - reported.calls),
  }
  const state = { spent: grown.spent, others, raised: total.raised }
  const leased = grantOf(ask, state, gateways)
  const { spent, estimated, calls } = ask
  await db
    .insertInto('spend')
    .values({ ...row, ...grown, raised: 0 })
    .onConflict(of => of.columns(['budget', 'from', 'holder']).doUpdateSet(grown))
    .execute()
  const lease = { leased, spent, estimated, calls }
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

/** Whether anything was leased. */
async function forfeitOne(
  db: Db,
  { budget, from, holder, gateway }: SpendRow & Pick<SpendLeaseRow, 'gateway'>,
): Promise<boolean> {
  const gone = await db
    .deleteFrom('spend_leases')
    .where('budget', '=', budget)
    .where('from', '=', from)
    .where('holder', '=', holder)
    .where('gateway', '=', gateway)
    .returning('leased')
    .executeTakeFirst()
  if (gone === undefined || gone.leased <= 0) return false
  await db
    .updateTable('spend')
    .set(of => ({ spent: of('spent', '+', gone.leased), estimated: of('estimated', '+', gone.leased) }))
    .where('budget', '=', budget)
    .where('from', '=', from)
    .where('holder', '=', holder)
    .execute()
  return true
}
