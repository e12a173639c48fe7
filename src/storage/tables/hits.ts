import { sql } from 'kysely'
import type { Operations } from '../methods.ts'

/** Rows that one statement writes. */
const maxRows = 500

export const hits: Operations<'hits'> = {
  async add(unit, all) {
    // Gateways add every few seconds, one after the other.
    await unit.alone('hits')
    for (let at = 0; at < all.length; at += maxRows) {
      await unit.db
        .insertInto('rule_hits')
        .values(all.slice(at, at + maxRows))
        .onConflict(of =>
          of
            .columns(['policy', 'rule', 'version', 'day'])
            .doUpdateSet({ count: sql<number>`rule_hits.count + excluded.count` }),
        )
        .execute()
    }
  },

  async of(db, policy) {
    const columns = ['policy', 'rule', 'version', 'day', 'count'] as const
    return await db.selectFrom('rule_hits').select(columns).where('policy', '=', policy).execute()
  },

  async prune({ db }, before) {
    await db.deleteFrom('rule_hits').where('day', '<', before).execute()
  },
}
