/** Commits that wait for a standby that is not there: none is confirmed, and what is found of them later stays true. */
import type pg from 'pg'
import { verifyTrail } from '../../src/audit/trail.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { eventually } from '../fixtures/gateway.ts'
import { createSchema, startPostgres } from '../fixtures/postgres.ts'
import t from '../fixtures/tap.ts'
import { actions, agent, approve, entry, get, suspend } from './contract/samples.ts'

const server = await startPostgres()
t.teardown(() => server.stop())

const standbys = async (admin: pg.Client, names: string): Promise<void> => {
  await admin.query(`alter system set synchronous_standby_names = '${names}'`)
  await admin.query('select pg_reload_conf()')
  await eventually(
    async () => (await admin.query('show synchronous_standby_names')).rows[0].synchronous_standby_names,
    found => found === names,
  )
}

t.test('a write that no standby confirms is in doubt, and the gateway is fenced until one does', async t => {
  const { admin, ...settings } = await createSchema(t, server)
  const store = await openPostgresStore({ settings, fenceMs: 2_000 })
  t.teardown(() => store.close())
  const still = { load: () => undefined, change: () => undefined }
  await store.feed.agents.follow(still)
  await store.feed.policies.follow(still)
  await store.untilOpen()
  await suspend(store, 'h1')
  await standbys(admin, 'nobody')
  const start = performance.now()
  await t.rejects(approve(store, 'h1'), { name: 'StoreError', inDoubt: true })
  await t.rejects(store.agents.insert(agent('a1'), 'h', entry('agent.register')), { name: 'StoreError' })
  t.ok(performance.now() - start < 5_000)
  await eventually(
    async () => store.fence.isOpen,
    isOpen => !isOpen,
  )
  await standbys(admin, '')
  await eventually(async () => store.fence.isOpen, Boolean)
  const item = await eventually(
    () => get(store, 'h1'),
    ({ status }) => status === 'Pending',
  )
  t.equal(item.attempt, 1, 'the claim was committed, and taken back since nobody acts on it')
  const ofItem = (await actions(store)).filter(action => action.startsWith('hitl'))
  t.same(ofItem, ['hitl.suspend', 'hitl.approve', 'hitl.release'])
  t.match(await verifyTrail(store.audit), { ok: true })
})

t.test('a wait that an operator cancels confirms nothing', async t => {
  const { admin, ...settings } = await createSchema(t, server)
  const store = await openPostgresStore({ settings })
  t.teardown(() => store.close())
  await standbys(admin, 'nobody')
  const written = store.audit.append(entry('one'))
  await eventually(
    async () =>
      (await admin.query(`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`)).rowCount,
    count => count !== 0,
  )
  await t.rejects(written, { name: 'StoreError', inDoubt: true, message: /canceling wait/ })
  await standbys(admin, '')
})
