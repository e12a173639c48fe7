import t from 'tap'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { eventually } from '../fixtures/gateway.ts'
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
  await admin.query('begin')
  await admin.query(`select from ${settings.schema}.agents where id = 'a1' for update`)
  const blocked = revoke('a1')
  await eventually(
    () => admin.query('select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'),
    ({ rowCount }) => rowCount === 1,
  )
  await revoke('a2')
  t.strictSame(done, ['a2'], 'the row of the other one is still locked')
  await admin.query('commit')
  await blocked
})
