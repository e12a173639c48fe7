import type pg from 'pg'
import type { Test } from 'tap'
import { openPostgresStore } from '../../../src/storage/postgres/open.ts'
import type { Store } from '../../../src/storage/store.ts'
import { eventually } from '../../fixtures/gateway.ts'
import { createSchema, type Server } from '../../fixtures/postgres.ts'
import { contract } from '../contract.ts'
import { subscriptions } from './deliveries.ts'
import { tables } from './samples.ts'
import { turnPlan } from './turn.ts'

/** The contract on two stores over one database. */
export async function postgresContract(t: Test, server?: Server): Promise<void> {
  const settings = await createSchema(t, server)
  const store = await openPostgresStore({ settings, subscriptions })
  const other = await openPostgresStore({ settings, subscriptions })
  t.teardown(() => Promise.all([store.close(), other.close()]))
  // One schema for all, emptied in between: making one for each would take most of the time, and so would `truncate`, which
  // writes new files for each table and index. A replica runs no triggers and checks no references.
  await settings.admin.query('set session_replication_role = replica')
  const emptying = (await withReferring(settings.admin)).map(table => `delete from ${table};`).join(' ')
  async function emptied() {
    await settings.admin.query(`${emptying}
      update fleet set epoch = gen_random_uuid(), past = past || epoch`)
    // What they knew to be committed is gone: they write again once they have taken note of the new epoch.
    const writes = (one: Store) =>
      one.grants.releaseKey({ agentId: '', key: '', expiresAt: 0 }).then(
        () => true,
        () => false,
      )
    for (const one of [store, other]) await eventually(() => writes(one), Boolean)
    return store
  }
  contract(t, emptied, { other, query: async text => (await settings.admin.query(text)).rows })
  turnPlan(t, server)
}

/** Those that a test leaves rows in, and those that refer to them. */
async function withReferring(admin: pg.Client): Promise<readonly string[]> {
  const { rows } = await admin.query<{ name: string }>(
    `with recursive found (id) as (
      select unnest($1::text[])::regclass::oid
      union select conrelid from pg_constraint, found where contype = 'f' and confrelid = id
    ) select id::regclass::text as name from found`,
    [tables],
  )
  return rows.map(({ name }) => name)
}
