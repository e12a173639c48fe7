import { openPostgresStore } from '../../../src/storage/postgres/open.ts'
import { createSchema, type Server } from '../../fixtures/postgres.ts'
import type { Test } from '../../fixtures/tap.ts'
import { contract } from '../contract.ts'
import { tables } from './samples.ts'

/** The contract on two stores over one database. */
export async function postgresContract(t: Test, server?: Server): Promise<void> {
  const settings = await createSchema(t, server)
  const store = await openPostgresStore({ settings })
  const other = await openPostgresStore({ settings })
  t.teardown(() => Promise.all([store.close(), other.close()]))
  // One schema for all, emptied in between: making one for each would take most of the time.
  async function emptied() {
    await settings.admin.query(`truncate ${tables.join()} cascade`)
    return store
  }
  contract(t, emptied, other)
}
