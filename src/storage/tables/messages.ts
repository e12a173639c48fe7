import { sql } from 'kysely'
import type { Operations } from '../methods.ts'

const ofRequest = ['status', 'replay', 'decidedBy', 'responseStatus', 'digest'] as const

export const messages: Operations<'messages'> = {
  async keep({ db }, { channel, reference, hitlId, state, shown }) {
    // A request that was pruned meanwhile has no messages.
    const { rows } = await sql`select id from hitl where id = ${hitlId}`.execute(db)
    if (rows.length === 0) return
    const row = { channel, reference, hitlId, state, shown }
    await db
      .insertInto('messages')
      .values(row)
      .onConflict(of => of.doNothing())
      .execute()
  },

  async stale(db, channel, limit) {
    const all = db.selectFrom('messages').innerJoin('hitl', 'hitl.id', 'messages.hitlId').where('channel', '=', channel)
    const other = all.where(sql<boolean>`state <> status || ' ' || coalesce(replay, '')`)
    return other
      .select(['reference', 'hitlId', 'shown', ...ofRequest])
      .orderBy('reference')
      .limit(limit)
      .execute()
  },

  async note({ db }, { channel, reference }, state) {
    const isIt = sql<boolean>`channel = ${channel} and reference = ${reference}`
    if (state === null) await db.deleteFrom('messages').where(isIt).execute()
    else await db.updateTable('messages').set({ state }).where(isIt).execute()
  },
}
