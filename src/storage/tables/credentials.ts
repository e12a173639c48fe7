import type { CredentialNotes, StoredCredential } from '../credentials.ts'
import type { Operations } from '../methods.ts'
import type { Unit } from '../unit.ts'

const columns = ['name', 'version', 'state', 'rotates', 'sealed'] as const
const unleased = { leaseOwner: null, leaseUntil: null } as const

export const credentials: Operations<'credentials'> = {
  async all(db) {
    const rows = await db.selectFrom('credentials').select(['name', 'version']).orderBy('name').execute()
    return rows.map(row => ({ ...row }))
  },

  async of(db, name) {
    const row = await db.selectFrom('credentials').select(columns).where('name', '=', name).executeTakeFirst()
    return row && { ...row }
  },

  async lease({ db, gateway }, { name, version, now, until }) {
    const { numUpdatedRows } = await db
      .updateTable('credentials')
      .set({ leaseOwner: gateway, leaseUntil: until })
      .where('name', '=', name)
      .where('version', '=', version)
      .where(of => of.or([of('leaseUntil', 'is', null), of('leaseUntil', '<=', now), of('leaseOwner', '=', gateway)]))
      .executeTakeFirst()
    return Number(numUpdatedRows) === 1
  },

  async put(unit, row, notes) {
    if (!(await (row.version === 1 ? insert(unit, row) : replace(unit, row)))) return false
    unit.change({ table: 'credentials', key: row.name, now: { name: row.name, version: row.version } })
    report(unit, notes)
    return true
  },

  async note(unit, notes) {
    report(unit, notes)
  },
}

async function insert({ db }: Unit, row: StoredCredential): Promise<boolean> {
  const inserted = await db
    .insertInto('credentials')
    .values({ ...row, ...unleased })
    .onConflict(of => of.column('name').doNothing())
    .executeTakeFirst()
  return Number(inserted.numInsertedOrUpdatedRows ?? 0) === 1
}

async function replace({ db }: Unit, { name, version, ...row }: StoredCredential): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('credentials')
    .set({ ...row, version, ...unleased })
    .where('name', '=', name)
    .where('version', '=', version - 1)
    .executeTakeFirst()
  return Number(numUpdatedRows) === 1
}

function report(unit: Unit, { entry, event }: CredentialNotes): void {
  if (entry !== undefined) unit.audit(entry)
  if (event !== undefined) unit.event(event)
}
