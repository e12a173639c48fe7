import { agentSubject, type CredentialNotes, keyText, type StoredCredential, subjectFacts } from '../credentials.ts'
import type { Operations } from '../methods.ts'
import type { Db } from '../schema.ts'
import { locked } from '../statement.ts'
import type { Unit } from '../unit.ts'
import { keepCode } from './codes.ts'

const columns = ['name', 'subject', 'version', 'state', 'rotates', 'sealed'] as const
const unleased = { leaseOwner: null, leaseUntil: null } as const

export const credentials: Operations<'credentials'> = {
  async all(db) {
    return db
      .selectFrom('credentials')
      .select(['name', 'subject', 'version'])
      .orderBy('name')
      .orderBy('subject')
      .execute()
  },

  async of(db, { name, subject }) {
    return db
      .selectFrom('credentials')
      .select(columns)
      .where('name', '=', name)
      .where('subject', '=', subject)
      .executeTakeFirst()
  },

  async list(db, { name, subject }, limit) {
    const all = db.selectFrom('credentials').select(columns).orderBy('subject').orderBy('name').limit(limit)
    const named = name === undefined ? all : all.where('name', '=', name)
    return (subject === undefined ? named : named.where('subject', '=', subject)).execute()
  },

  async lease({ db, gateway }, { name, subject, version, now, until }) {
    const { numUpdatedRows } = await db
      .updateTable('credentials')
      .set({ leaseOwner: gateway, leaseUntil: until })
      .where('name', '=', name)
      .where('subject', '=', subject)
      .where('version', '=', version)
      .where(of => of.or([of('leaseUntil', 'is', null), of('leaseUntil', '<=', now), of('leaseOwner', '=', gateway)]))
      .executeTakeFirst()
    return Number(numUpdatedRows) === 1
  },

  async put(unit, row, notes) {
    if (!(await (row.version === 1 ? insert(unit, row) : replace(unit, row)))) return false
    const { name, subject, version } = row
    unit.change({ table: 'credentials', key: keyText(row), now: { name, subject, version } })
    report(unit, notes)
    return true
  },

  async note(unit, notes) {
    report(unit, notes)
  },

  async keepConsent(unit, consent, limits) {
    await keepCode(unit, 'consents', consent, limits)
  },

  async takeConsent({ db }, hash, now) {
    return db
      .deleteFrom('consents')
      .where('hash', '=', hash)
      .where('expiresAt', '>', now)
      .returningAll()
      .executeTakeFirst()
  },
}

/** Part of the removal of an agent: its accounts go with it. */
export async function removeAccounts(unit: Unit, agent: Parameters<typeof agentSubject>[0]): Promise<void> {
  const gone = unit.db.deleteFrom('credentials').where('subject', '=', agentSubject(agent))
  for (const key of await gone.returning(['name', 'subject']).execute()) {
    unit.change({ table: 'credentials', key: keyText(key), now: undefined })
  }
}

async function insert({ db }: Unit, row: StoredCredential): Promise<boolean> {
  if (!(await isSubjectThere(db, row.subject))) return false
  const inserted = await db
    .insertInto('credentials')
    .values({ ...row, ...unleased })
    .onConflict(of => of.columns(['name', 'subject']).doNothing())
    .executeTakeFirst()
  return Number(inserted.numInsertedOrUpdatedRows ?? 0) === 1
}

/** An account that is stored while its agent is removed would never be found again. */
async function isSubjectThere(db: Db, subject: string): Promise<boolean> {
  const { agentId } = subjectFacts(subject)
  if (agentId === undefined) return true
  const agent = db.selectFrom('agents').select(['id', 'createdAt']).where('id', '=', agentId)
  const found = await locked(db, agent).executeTakeFirst()
  return found !== undefined && agentSubject(found) === subject
}

async function replace({ db }: Unit, { name, subject, version, ...row }: StoredCredential): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('credentials')
    .set({ ...row, version, ...unleased })
    .where('name', '=', name)
    .where('subject', '=', subject)
    .where('version', '=', version - 1)
    .executeTakeFirst()
  return Number(numUpdatedRows) === 1
}

function report(unit: Unit, { entry, event }: CredentialNotes): void {
  if (entry !== undefined) unit.audit(entry)
  if (event !== undefined) unit.event(event)
}
