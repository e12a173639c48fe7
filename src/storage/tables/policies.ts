import type { Operations } from '../schema.ts'
import type { PolicyTable } from '../store.ts'
import { append } from './audit.ts'

export const policies: Operations<PolicyTable> = {
  async all(db) {
    return db.selectFrom('policies').selectAll().orderBy('name').execute()
  },

  async insert(db, policy, entry) {
    const { numInsertedOrUpdatedRows } = await db
      .insertInto('policies')
      .values(policy)
      .onConflict(conflict => conflict.column('name').doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows === 0n) return 'exists'
    await append(db, entry)
    return 'stored'
  },

  /** `createdAt` stays what it was. */
  async update(db, policy, entry) {
    const { numUpdatedRows } = await db
      .updateTable('policies')
      .set({ document: policy.document, updatedAt: policy.updatedAt })
      .where('name', '=', policy.name)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return 'notFound'
    await append(db, entry)
    return 'stored'
  },

  async remove(db, name, entry) {
    const { numDeletedRows } = await db.deleteFrom('policies').where('name', '=', name).executeTakeFirst()
    if (numDeletedRows === 0n) return false
    await append(db, entry)
    return true
  },
}
