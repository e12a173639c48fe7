import { sql } from 'kysely'
import type { Operations } from '../methods.ts'
import type { Db } from '../schema.ts'
import type { ToolDigests, ToolLimits } from '../tools.ts'

export const tools: Operations<'tools'> = {
  async digests(db, agentId, server) {
    const kept = db.selectFrom('seen_tools').select('digests')
    const row = await kept.where('agentId', '=', agentId).where('server', '=', server).executeTakeFirst()
    return row && JSON.parse(row.digests)
  },

  async keep(unit, { digests, ...key }, limits, entry) {
    const { db } = unit
    const row = { ...key, digests: JSON.stringify(digests) }
    await db
      .insertInto('seen_tools')
      .values(row)
      .onConflict(of => of.columns(['agentId', 'server']).doUpdateSet({ digests: row.digests, at: row.at }))
      .execute()
    const forgotten = await beyond(db, key, limits)
    if (forgotten.length > 0) {
      await db.deleteFrom('seen_tools').where('agentId', '=', key.agentId).where('server', 'in', forgotten).execute()
    }
    if (entry === undefined) return
    unit.audit(entry)
    const { at, details } = entry
    unit.event({ type: 'toolChanged', at, hitlId: null, data: { agentId: key.agentId, ...details } })
  },
}

/** Servers of the agent that no longer fit beside the one that was just kept. */
async function beyond(
  db: Db,
  { agentId, server: kept }: Pick<ToolDigests, 'agentId' | 'server'>,
  { maxServers, maxBytes }: ToolLimits,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('seen_tools')
    .select(['server', sql<number>`octet_length(digests)`.as('bytes')])
    .where('agentId', '=', agentId)
    .orderBy('at', 'desc')
    .orderBy('server')
    .execute()
  let left = maxBytes - (rows.find(({ server }) => server === kept)?.bytes ?? 0)
  const forgotten = rows.filter(({ server, bytes }, n) => {
    if (server === kept) return false
    left -= bytes
    return n >= maxServers || left < 0
  })
  return forgotten.map(({ server }) => server)
}
