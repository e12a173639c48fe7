import type { Operations, PolicyRow } from '../schema.ts'
import type { PolicyRecord, PolicyTable } from '../store.ts'
import { append } from './audit.ts'

export const policies: Operations<PolicyTable> = {
  async all(db) {
    const rows = await db.selectFrom('policies').selectAll().orderBy('name').execute()
    return rows.map(toRecord)
  },

  async insert(db, policy, entry) {
    const { numInsertedOrUpdatedRows } = await db
      .insertInto('policies')
      .values({
        name: policy.name,
        document: policy.document,
        created_at: policy.createdAt,
        updated_at: policy.updatedAt,
      })
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
      .set({ document: policy.document, updated_at: policy.updatedAt })
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

function toRecord(row: PolicyRow): PolicyRecord {
  return { name: row.name, document: row.document, createdAt: row.created_at, updatedAt: row.updated_at }
}
