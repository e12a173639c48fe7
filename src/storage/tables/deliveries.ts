import { type RawBuilder, sql } from 'kysely'
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

  async remove({ db }, gone) {
    for (const { id, event } of gone) {
      // The number may belong to another one by now.
      await db.deleteFrom('deliveries').where('id', '=', id).where('event', '=', event).execute()
    }
  },

  async leave({ db }, owner) {
    await db.deleteFrom('hooks').where('owner', '=', owner).execute()
  },

  async prune(unit, before, max) {
    const { db } = unit
    if (!(await unit.tryAlone('prune'))) return []
    const old = await drop(db, sql`select id from deliveries where at < ${before} order by at limit ${maxAtOnce}`)
    const dropped = old.map(some => ({ ...some, isOld: true }))
    // Looked for afterwards: what was dropped already is not too much.
    const { rows } = await crowdedHooks({ max }).execute(db)
    for (const { hook } of rows) {
      for (const some of await drop(db, tooMany(hook, max))) dropped.push({ ...some, isOld: false })
    }
    return dropped
  },
}

/**
 * The hooks for which more than `max` messages wait. Of each only the first and the last are read as long as their numbers
 * leave no gap for so many, otherwise `max` of them.
 */
export const crowdedHooks = ({ max }: { readonly max: number }) => sql<{ readonly hook: string }>`
  with recursive found (hook) as (
    select min(hook) from deliveries
    union all
    select (select min(hook) from deliveries where hook > found.hook) from found where found.hook is not null
  )
  select hook from found where hook is not null
    and (select max(id) from deliveries where hook = found.hook)
      - (select min(id) from deliveries where hook = found.hook) >= ${max}
    and exists (select id from deliveries where hook = found.hook order by id limit 1 offset ${max})`

/** Removed at a time. */
const maxAtOnce = sql.lit(1_000)

/**
 * Those beyond `max` of a hook. The newest of each agent stay first, then the second newest of each, and so on: who has more
 * than the others loses its oldest.
 */
const tooMany = (hook: string, max: number) => sql`
  select id from (
    select id, row_number() over (partition by "agentId" order by id desc) as nth from deliveries where hook = ${hook}
  ) as numbered order by nth, id desc limit ${maxAtOnce} offset ${max}`

async function drop(db: Db, chosen: RawBuilder<unknown>): Promise<readonly Omit<Dropped, 'isOld'>[]> {
  const gone = await db
    .deleteFrom('deliveries')
    .where(sql<boolean>`id in (${chosen})`)
    .returning(['hook', 'agentId'])
    .execute()
  return [...Map.groupBy(gone, ({ hook }) => hook)].flatMap(([hook, ofHook]) =>
    [...Map.groupBy(ofHook, ({ agentId }) => agentId)].map(([agentId, { length }]) => ({
      hook,
      agentId,
      count: length,
    })),
  )
}
