/**
 * What a sweep would find: one look, so that gateways on which nothing is due write nothing. Each part asks for the first row
 * in the order of an index and compares it here: with the time in the condition, a plan for any time may read all rows.
 */
import { sql } from 'kysely'
import type { Db } from '../schema.ts'
import { statement } from '../statement.ts'
import type { Deadlines, Due } from '../store.ts'
import { crowdedHooks } from './deliveries.ts'
import { usedUp } from './grants.ts'

const selectFirst = statement((db, { max }: Pick<Deadlines, 'max'>) =>
  db.selectNoFrom(({ selectFrom }) => [
    selectFrom('hitl').select('leaseUntil').where('replay', '=', 'inFlight').orderBy('leaseUntil').limit(1).as('lease'),
    selectFrom('hitl').select('expiresAt').where('status', '=', 'Pending').orderBy('expiresAt').limit(1).as('expiry'),
    selectFrom('hitl')
      .select('decidedAt')
      .where('decidedAt', 'is not', null)
      .where(eb => eb.or([eb('replay', 'is', null), eb('replay', '!=', 'inFlight')]))
      .orderBy('decidedAt')
      .limit(1)
      .as('decided'),
    selectFrom('grants').select('expiresAt').orderBy('expiresAt').limit(1).as('grant'),
    usedUp(db).limit(1).as('used'),
    selectFrom('granted_keys').select('expiresAt').orderBy('expiresAt').limit(1).as('key'),
    selectFrom('deliveries').select('at').orderBy('at').limit(1).as('delivery'),
    sql<boolean>`exists (${crowdedHooks({ max })})`.as('many'),
  ]),
)

export async function due(db: Db, { now, decided, delivered, max }: Deadlines): Promise<Due> {
  const [first] = (await selectFirst(db, { max })).rows
  const isOver = (time: number | null | undefined, end = now) => time != null && time <= end
  return {
    lapse: isOver(first?.lease),
    expire: isOver(first?.expiry),
    prune: isOver(first?.decided, decided - 1),
    grants: isOver(first?.grant) || first?.used != null || isOver(first?.key),
    deliveries: isOver(first?.delivery, delivered - 1) || Boolean(first?.many),
  }
}
