import type { CodeLimits, CodeRecord } from '../codes.ts'
import type { Operations } from '../methods.ts'
import type { Unit } from '../unit.ts'

export const codes: Operations<'codes'> = {
  async keep(unit, code, limits, entry) {
    await keepCode(unit, 'console_codes', code, limits)
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

/** Those that are over are forgotten, and of more than the limits those that expire first. */
export async function keepCode(
  unit: Unit,
  named: 'console_codes' | 'consents',
  code: CodeRecord,
  { now, max, maxEach }: CodeLimits & { readonly now: number },
): Promise<void> {
  // They have the same columns, and one more.
  const table = named as 'console_codes'
  const { db } = unit
  await unit.alone(table)
  await db.insertInto(table).values(code).execute()
  const newest = db.selectFrom(table).select('hash').orderBy('expiresAt', 'desc').orderBy('hash')
  const { agentId } = code
  const newestOwn = newest.where('agentId', '=', agentId).limit(maxEach)
  const forgotten = db.deleteFrom(table)
  // First its own, so that they do not count against those of others.
  await forgotten.where('agentId', '=', agentId).where('hash', 'not in', newestOwn).execute()
  await forgotten.where(of => of.or([of('expiresAt', '<=', now), of('hash', 'not in', newest.limit(max))])).execute()
}
