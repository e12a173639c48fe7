/** What a sweep would find: one look, so that gateways on which nothing is due write nothing. */

import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { Deadlines, Due } from '../store.ts'

const selectDue = statement((db, { now, decided, delivered, most }: Deadlines) =>
  db.selectNoFrom(({ exists, selectFrom }) => [
    exists(selectFrom('hitl').select('id').where('replay', '=', 'inFlight').where('leaseUntil', '<=', now)).as('lapse'),
    exists(selectFrom('hitl').select('id').where('status', '=', 'Pending').where('expiresAt', '<=', now)).as('expire'),
    exists(
      selectFrom('hitl')
        .select('id')
        .where('decidedAt', '<', decided)
        .where(eb => eb.or([eb('replay', 'is', null), eb('replay', '!=', 'inFlight')])),
    ).as('prune'),
    exists(
      selectFrom('grants')
        .select('id')
        .where(eb => eb.or([eb('expiresAt', '<=', now), eb('uses', '>=', eb.ref('maxUses'))])),
    ).as('grants'),
    exists(selectFrom('granted_keys').select('key').where('expiresAt', '<=', now)).as('keys'),
    exists(selectFrom('deliveries').select('id').where('at', '<', delivered)).as('old'),
    exists(
      selectFrom('deliveries')
        .select('hook')
        .groupBy('hook')
        .having(eb => eb.fn.countAll(), '>', most),
    ).as('many'),
  ]),
)

export async function due(db: Db, at: Deadlines): Promise<Due> {
  const [found] = (await selectDue(db, at)).rows
  const { lapse, expire, prune, grants, keys, old, many } = found ?? {}
  return {
    lapse: Boolean(lapse),
    expire: Boolean(expire),
    prune: Boolean(prune),
    grants: Boolean(grants) || Boolean(keys),
    deliveries: Boolean(old) || Boolean(many),
  }
}
