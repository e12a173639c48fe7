import type { Operations } from '../methods.ts'

export const codes: Operations<'codes'> = {
  async keep(unit, code, { now, max }, entry) {
    const { db } = unit
    await unit.alone('console_codes')
    await db.insertInto('console_codes').values(code).execute()
    const newest = db.selectFrom('console_codes').select('hash').orderBy('expiresAt', 'desc').orderBy('hash').limit(max)
    await db
      .deleteFrom('console_codes')
      .where(of => of.or([of('expiresAt', '<=', now), of('hash', 'not in', newest)]))
      .execute()
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
