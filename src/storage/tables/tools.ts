import type { Operations } from '../methods.ts'

export const tools: Operations<'tools'> = {
  async seen(db, agentId, server) {
    const kept = db.selectFrom('seen_tools').select('digests')
    const row = await kept.where('agentId', '=', agentId).where('server', '=', server).executeTakeFirst()
    return row && JSON.parse(row.digests)
  },

  async keep(unit, { digests, ...key }, mostServers, change) {
    const { db } = unit
    const row = { ...key, digests: JSON.stringify(digests) }
    await db
      .insertInto('seen_tools')
      .values(row)
      .onConflict(of => of.columns(['agentId', 'server']).doUpdateSet({ digests: row.digests, at: row.at }))
      .execute()
    const newest = db
      .selectFrom('seen_tools')
      .select('server')
      .where('agentId', '=', key.agentId)
      .orderBy('at', 'desc')
      .orderBy('server')
      .limit(mostServers)
    await db
      .deleteFrom('seen_tools')
      .where('agentId', '=', key.agentId)
      .where('server', '!=', key.server)
      .where('server', 'not in', newest)
      .execute()
    if (change === undefined) return
    const { entry, isTold } = change
    unit.audit(entry)
    const { at, details } = entry
    if (isTold) unit.event({ type: 'toolChanged', at, hitlId: null, data: { agentId: key.agentId, ...details } })
  },
}
