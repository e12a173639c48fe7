import { randomBytes } from 'node:crypto'
import type { Operations } from '../methods.ts'
import type { Unit } from '../unit.ts'

export const tokens: Operations<'tokens'> = {
  async all(db) {
    const rows = await db.selectFrom('token_epoch').select('epoch').execute()
    return rows.map(({ epoch }) => epoch)
  },
}

/** Makes every token void. First of all in its unit of work. */
export async function voidTokens(unit: Unit): Promise<void> {
  await unit.alone('token_epoch')
  const epoch = randomBytes(16).toString('hex')
  await unit.db.deleteFrom('token_epoch').execute()
  await unit.db.insertInto('token_epoch').values({ epoch }).execute()
  unit.change({ table: 'tokens', key: 'epoch', now: epoch })
}
