/** Commits that wait for a standby that is not there: none is confirmed, and what is found of them later stays true. */

import t, { type Test } from 'tap'
import { verifyTrail } from '../../src/audit/trail.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { eventually } from '../fixtures/gateway.ts'
import { createSchema, startPostgres } from '../fixtures/postgres.ts'
import { cancelCommits, setStandbys } from '../fixtures/postgres-faults.ts'
import { actions, agent, approve, entry, get, suspend } from './contract/samples.ts'

const server = await startPostgres()
t.teardown(() => server.stop())

/** A store whose fence is open, and closes after 2 s without a turn. */
async function openFenced(t: Test) {
  const { admin, ...settings } = await createSchema(t, server)
  const store = await openPostgresStore({ settings: { ...settings, timeoutSeconds: 2 }, fenceMs: 2_000 })
  t.teardown(() => store.close())
  const still = { load: () => undefined, change: () => undefined }
  await store.feed.agents.follow(still)
  await store.feed.policies.follow(still)
  await store.untilOpen()
  return { admin, store }
}

t.test('a write that no standby confirms is in doubt, and the gateway is fenced until one does', async t => {
  const { admin, store } = await openFenced(t)
  await suspend(store, 'h1')
  await setStandbys(admin, 'nobody')
  const start = performance.now()
  await t.rejects(approve(store, 'h1'), { name: 'StoreError', inDoubt: true })
  await t.rejects(store.agents.insert(agent('a1'), 'h', entry('agent.register')), { name: 'StoreError' })
  t.ok(performance.now() - start < 15_000, 'each call ends at its limit of 2 s')
  await eventually(
    async () => store.fence.isOpen,
    isOpen => !isOpen,
  )
  await setStandbys(admin, '')
  await eventually(async () => store.fence.isOpen, Boolean)
  const item = await eventually(
    () => get(store, 'h1'),
    ({ status }) => status === 'Pending',
  )
  t.equal(item.attempt, 1, 'the claim was committed, and taken back since nobody acts on it')
  const ofItem = (await actions(store)).filter(action => action.startsWith('hitl'))
  t.strictSame(ofItem, ['hitl.suspend', 'hitl.approve', 'hitl.release'])
  t.match(await verifyTrail(store.audit), { ok: true })
})

t.test('a wait that an operator cancels confirms nothing', async t => {
  const { admin, ...settings } = await createSchema(t, server)
  const store = await openPostgresStore({ settings })
  t.teardown(() => store.close())
  await setStandbys(admin, 'nobody')
  const written = store.audit.append(entry('one'))
  await eventually(
    () => cancelCommits(admin),
    count => count !== 0,
  )
  await t.rejects(written, { name: 'StoreError', inDoubt: true, message: /canceling wait/ })
  await setStandbys(admin, '')
})

t.test('turns whose commits an operator cancels do not keep a gateway open', async t => {
  const { admin, store } = await openFenced(t)
  await setStandbys(admin, 'nobody')
  const start = performance.now()
  await eventually(
    async () => (await cancelCommits(admin)) >= 0 && store.fence.isOpen,
    isOpen => !isOpen,
  )
  t.ok(performance.now() - start < 15_000, 'the fence closes 2 s after the last turn')
  await setStandbys(admin, '')
  await eventually(async () => store.fence.isOpen, Boolean)
})
