import type { Delivery, Dropped } from '../deliveries.ts'
import type { Operations } from '../methods.ts'
import type { Db } from '../schema.ts'

export const deliveries: Operations<'deliveries'> = {
  async take({ db }, hooks, { owner, now, until }) {
    if (hooks.length === 0) return []
    const taken = await db
      .insertInto('hooks')
      // Sorted: two gateways do not wait for each other.
      .values([...hooks].sort().map(hook => ({ hook, owner, leaseUntil: until })))
      .onConflict(conflict =>
        conflict
          .column('hook')
          .doUpdateSet({ owner, leaseUntil: until })
          .where(eb => eb.or([eb('hooks.owner', '=', owner), eb('hooks.leaseUntil', '<=', now)])),
      )
      .returning('hook')
      .execute()
    return taken.map(({ hook }) => hook)
  },

  async next(db, hook, limit) {
    const columns = ['id', 'event', 'payload'] as const
    const first = db.selectFrom('deliveries').select(columns).where('hook', '=', hook).orderBy('id').limit(limit)
    // Written as such a note.
    return (await first.execute()).map(({ payload, ...row }): Delivery => ({ ...row, note: JSON.parse(payload) }))
  },

  async remove({ db }, { id, event }) {
    // The number may belong to another one by now.
    await db.deleteFrom('deliveries').where('id', '=', id).where('event', '=', event).execute()
  },

  async leave({ db }, owner) {
    await db.deleteFrom('hooks').where('owner', '=', owner).execute()
  },

  async prune(unit, before, most) {
    const { db } = unit
    if (!(await unit.tryAlone('prune'))) return []
    const dropped = [await drop(db, first(db, mostAtOnce).where('at', '<', before))]
    // Counted afterwards: what was dropped already is not too much.
    const all = db.selectFrom('deliveries').select('hook').groupBy('hook')
    const crowded = await all
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .having(({ fn }) => fn.countAll(), '>', most)
      .execute()
    for (const { hook, count } of crowded) {
      dropped.push(await drop(db, first(db, Number(count) - most).where('hook', '=', hook)))
    }
    return dropped.flat()
  },
}

/** Removed at a time. */
const mostAtOnce = 1_000

const first = (db: Db, count: number) =>
  db.selectFrom('deliveries').select('id').orderBy('id').limit(Math.min(count, mostAtOnce))

type Chosen = ReturnType<typeof first>

async function drop(db: Db, chosen: Chosen): Promise<readonly Dropped[]> {
  const gone = await db.deleteFrom('deliveries').where('id', 'in', chosen).returning('hook').execute()
  const byHook = Map.groupBy(gone, ({ hook }) => hook)
  return [...byHook].map(([hook, { length }]) => ({ hook, count: length }))
}
