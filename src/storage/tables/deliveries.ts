import { sql } from 'kysely'
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
    const ofHook = db.selectFrom('deliveries').select(['id', 'event', 'payload'])
    // With equality, to read the messages of all hooks in their order may seem cheaper.
    const first = ofHook.where('hook', '>=', hook).where('hook', '<=', hook).orderBy('hook').orderBy('id').limit(limit)
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
    const old = db.selectFrom('deliveries').select('id').where('at', '<', before).orderBy('at')
    const dropped = [await drop(db, old)]
    // Looked for afterwards: what was dropped already is not too much.
    const { rows } = await crowdedHooks({ most }).execute(db)
    for (const { hook } of rows) dropped.push(await drop(db, tooMany(db, hook, most)))
    return dropped.flat()
  },
}

/**
 * The hooks for which more than `most` messages wait. Of each only the first and the last are read as long as their numbers
 * leave no room for so many, else `most` of them.
 */
export const crowdedHooks = ({ most }: { readonly most: number }) => sql<{ readonly hook: string }>`
  with recursive found (hook) as (
    select min(hook) from deliveries
    union all
    select (select min(hook) from deliveries where hook > found.hook) from found where found.hook is not null
  )
  select hook from found where hook is not null
    and (select max(id) from deliveries where hook = found.hook)
      - (select min(id) from deliveries where hook = found.hook) >= ${most}
    and exists (select id from deliveries where hook = found.hook order by id limit 1 offset ${most})`

/** The oldest messages of a hook, beyond the latest `most`. */
function tooMany(db: Db, hook: string, most: number) {
  const ofHook = db.selectFrom('deliveries').select('id').where('hook', '=', hook)
  const last = ofHook.orderBy('id', 'desc').limit(1).offset(most)
  return ofHook.where('id', '<=', last).orderBy('id')
}

/** Removed at a time. */
const mostAtOnce = 1_000

type Chosen = ReturnType<typeof tooMany>

async function drop(db: Db, chosen: Chosen): Promise<readonly Dropped[]> {
  const gone = await db
    .deleteFrom('deliveries')
    .where('id', 'in', chosen.limit(sql.lit(mostAtOnce)))
    .returning('hook')
    .execute()
  const byHook = Map.groupBy(gone, ({ hook }) => hook)
  return [...byHook].map(([hook, { length }]) => ({ hook, count: length }))
}
