import { sql } from 'kysely'
import type { Operations } from '../methods.ts'

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

  async prune({ db }, before, limit) {
    const columns = ['policy', 'rule', 'version', 'day'] as const
    const old = db.selectFrom('rule_hits').select(columns).where('day', '<', before).orderBy('day').limit(limit)
    for (const { policy, rule, version, day } of await old.execute()) {
      const ofRule = db.deleteFrom('rule_hits').where('policy', '=', policy).where('rule', '=', rule)
      await ofRule.where('version', '=', version).where('day', '=', day).execute()
    }
  },
}
