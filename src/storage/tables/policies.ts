import type { Operations } from '../methods.ts'
import type { PolicyEdit, PolicyRecord } from '../store.ts'
import type { Unit } from '../unit.ts'

const policyColumns = ['name', 'document', 'createdAt', 'updatedAt'] as const satisfies (keyof PolicyRecord)[]

export const policies: Operations<'policies'> = {
  async all(db) {
    return db.selectFrom('policies').select(policyColumns).orderBy('name').execute()
  },

  async insert(unit, policy, entry) {
    const { numInsertedOrUpdatedRows } = await unit.db
      .insertInto('policies')
      .values(policy)
      .onConflict(conflict => conflict.column('name').doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows === 0n) return 'exists'
    unit.audit(entry)
    unit.change({ table: 'policies', key: policy.name, now: policy })
    return 'stored'
  },

  /** `createdAt` stays what it was. */
  async update(unit, policy, entry, from) {
    const stored = unit.db
      .updateTable('policies')
      .set({ document: policy.document, updatedAt: policy.updatedAt })
      .where('name', '=', policy.name)
      .returning(policyColumns)
    const row = await (from === undefined ? stored : stored.where('document', '=', from)).executeTakeFirst()
    if (row === undefined) return from === undefined ? 'notFound' : 'stale'
    unit.audit(entry)
    unit.change({ table: 'policies', key: policy.name, now: row })
    return 'stored'
  },

  async remove(unit, name, entry, from) {
    const removed = unit.db.deleteFrom('policies').where('name', '=', name)
    const { numDeletedRows } = await (from === undefined
      ? removed
      : removed.where('document', '=', from)
    ).executeTakeFirst()
    if (numDeletedRows === 0n) return from === undefined ? 'notFound' : 'stale'
    unit.audit(entry)
    unit.change({ table: 'policies', key: name, now: undefined })
    return 'removed'
  },

  async apply(unit, edits) {
    // In one order, so that two calls do not wait for each other.
    for (const edit of edits.toSorted((left, right) => (left.name < right.name ? -1 : 1))) await applyOne(unit, edit)
  },
}

async function applyOne(unit: Unit, { name, policy, entry }: PolicyEdit): Promise<void> {
  const changed =
    policy === undefined
      ? unit.db.deleteFrom('policies').where('name', '=', name).returning(policyColumns)
      : unit.db
          .insertInto('policies')
          .values(policy)
          .onConflict(conflict =>
            conflict.column('name').doUpdateSet({ document: policy.document, updatedAt: policy.updatedAt }),
          )
          .returning(policyColumns)
  const row = await changed.executeTakeFirst()
  if (row === undefined) return
  unit.audit(entry)
  unit.change({ table: 'policies', key: name, now: policy && row })
}
