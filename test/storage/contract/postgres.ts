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
  // One schema for all, emptied in between: making one for each would take most of the time.
  async function emptied() {
    await settings.admin.query(`truncate ${tables.join()} cascade;
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
