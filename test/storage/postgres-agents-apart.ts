import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { agent, entry } from './contract/samples.ts'

t.test('a revocation waits for no revocation of another agent', async t => {
  const { admin, ...settings } = await createSchema(t)
  const store = await openPostgresStore({ settings })
  t.teardown(() => store.close())
  for (const id of ['a1', 'a2']) await store.agents.insert(agent(id), 'h', entry(id))
  const done: string[] = []
  const revoke = async (id: string) => {
    await store.agents.update(id, { status: 'Revoked' }, entry('agent.revoke'))
    done.push(id)
  }
  const held = admin.query(
    `begin; select from ${settings.schema}.agents where id = 'a1' for update; select pg_sleep(2); commit`,
  )
  const blocked = revoke('a1')
  await revoke('a2')
  t.strictSame(done, ['a2'], 'the row of the other one is still locked')
  await held
  await blocked
})
