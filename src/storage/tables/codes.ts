import type { Operations } from '../methods.ts'

export const codes: Operations<'codes'> = {
  async keep(unit, code, { now, max, maxEach }, entry) {
    const { db } = unit
    await unit.alone('console_codes')
    await db.insertInto('console_codes').values(code).execute()
    const newest = db.selectFrom('console_codes').select('hash').orderBy('expiresAt', 'desc').orderBy('hash')
    const { agentId } = code
    const newestOwn = newest.where('agentId', '=', agentId).limit(maxEach)
    const forgotten = db.deleteFrom('console_codes')
    // First its own, so that they do not count against those of others.
    await forgotten.where('agentId', '=', agentId).where('hash', 'not in', newestOwn).execute()
    await forgotten.where(of => of.or([of('expiresAt', '<=', now), of('hash', 'not in', newest.limit(max))])).execute()
    unit.audit(entry)
  },

  async take({ db }, hash, now) {
    const taken = await db
      .deleteFrom('console_codes')
      .where('hash', '=', hash)
      .where('expiresAt', '>', now)
      .returning('agentId')
      .executeTakeFirst()
    return taken?.agentId
  },
}
