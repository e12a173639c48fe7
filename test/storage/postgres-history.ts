/** A database that lacks what a gateway knows to be committed: a failover that lost writes, or an older copy put back. */

import t, { type Test } from 'tap'
import { acceptLoss } from '../../src/storage/postgres/accept.ts'
import type { LossOptions } from '../../src/storage/postgres/loss.ts'
import { openPostgresStore, type SharedStore } from '../../src/storage/postgres/open.ts'
import { registerLock } from '../../src/storage/postgres/steps.ts'
import { eventually } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { copyTables } from '../fixtures/postgres-faults.ts'
import { actions, agent, approve, entry, get, suspend } from './contract/samples.ts'

type Settings = Awaited<ReturnType<typeof createSchema>>

/** @param loaded what each load of all agents waits for */
async function open(t: Test, settings: Settings, accept = false, loaded = () => Promise.resolve()) {
  const told: string[] = []
  const onLoss: LossOptions = { accept, onLost: what => told.push(what), onAccepted: () => told.push('accepted') }
  const store = await openPostgresStore({ settings, onLoss, fenceMs: 2_000 })
  t.teardown(() => store.close())
  const shown = new Map<string, string>()
  const show = (id: string, status: string | undefined) =>
    void (status === undefined ? shown.delete(id) : shown.set(id, status))
  await store.feed.agents.follow({
    load(all) {
      shown.clear()
      for (const { id, status } of all) show(id, status)
      return loaded()
    },
    change: (id, now) => void show(id, now?.status),
  })
  await store.feed.policies.follow({ load: () => undefined, change: () => undefined })
  return { store, told, shown }
}

const serves = (store: SharedStore, wanted = true) =>
  eventually(
    async () => store.fence.isOpen,
    open => open === wanted,
  )

const revoke = (store: SharedStore) => store.agents.update('a1', { status: 'Revoked' }, entry('agent.revoke'))

async function fleet(t: Test, accept = false) {
  const settings = { ...(await createSchema(t)), timeoutSeconds: 2 }
  const [a, b] = [await open(t, settings, accept), await open(t, settings, accept)]
  await Promise.all([serves(a.store), serves(b.store)])
  await a.store.agents.insert(agent('a1'), 'h', entry('agent.register'))
  await suspend(a.store, 'h1')
  return { settings, a, b, putBack: await copyTables(settings.admin) }
}

t.test('all gateways stop when an older copy is put back, and a start is refused', async t => {
  const { settings, a, b, putBack } = await fleet(t)
  await revoke(a.store)
  await putBack()
  await Promise.all([serves(a.store, false), serves(b.store, false)])
  t.match([...a.told, ...b.told][0], /record 3 was there/)
  const third = await open(t, settings)
  await t.rejects(third.store.untilOpen(), { name: 'StartupError', message: /fleet accept/ })
  t.equal(a.shown.get('a1'), 'Revoked', 'what the gateway knows stays')
})

t.test('a write is not committed in a database that lost what the gateway wrote, before any turn', async t => {
  const { settings, a, putBack } = await fleet(t)
  await approve(a.store, 'h1')
  await putBack()
  await t.rejects(approve(a.store, 'h1'), { name: 'StoreError', message: /lost/, inDoubt: false })
  const { rows } = await settings.admin.query(`select status from hitl where id = 'h1'`)
  t.strictSame(rows, [{ status: 'Pending' }])
})

t.test('records that others wrote in the place of the lost ones are noticed', async t => {
  const { settings, a, putBack } = await fleet(t)
  await revoke(a.store)
  await settings.admin.query('delete from members')
  await putBack()
  await settings.admin.query(`insert into audit
    select seq + 1, at, actor, 'other', subject, "requestId", details, hash, repeat('f', 64) from audit order by seq desc limit 1`)
  // A busy machine closes the fence for a late turn, too.
  const told = await eventually(
    async () => a.told,
    ({ length }) => length > 0,
  )
  t.match(told, [/record 3/])
  t.equal(a.store.fence.isOpen, false)
})

t.test('with Accept gateways go on: nothing that was brought back is valid or sent', async t => {
  const { a, b, putBack } = await fleet(t, true)
  await revoke(a.store)
  await putBack()
  // Only those that notice the loss before it is accepted are told of it.
  await eventually(
    async () => [a, b].filter(({ shown }) => shown.get('a1') === 'Active').length,
    count => count === 2,
  )
  await Promise.all([serves(a.store), serves(b.store)])
  t.match(await get(a.store, 'h1'), { status: 'Pending', replay: 'unknown' })
  t.strictSame(await actions(a.store), ['agent.register', 'hitl.suspend', 'store.restore'], 'one of them did it')
  await revoke(b.store)
  t.equal(a.shown.get('a1'), 'Revoked')
})

t.test('a gateway that loads everything again claims no changes of the history that was lost', async t => {
  const settings = { ...(await createSchema(t)), timeoutSeconds: 2 }
  const gate = Promise.withResolvers<void>()
  t.teardown(gate.resolve)
  let loads = 0
  const { store, told } = await open(t, settings, true, () => (loads++ === 0 ? Promise.resolve() : gate.promise))
  await serves(store)
  await store.agents.insert(agent('a1'), 'h', entry('agent.register'))
  const putBack = await copyTables(settings.admin)
  for (const status of ['Inactive', 'Active', 'Inactive'] as const) {
    await store.agents.update('a1', { status }, entry('agent.status'))
  }
  await putBack()
  await eventually(
    async () => told.at(-1),
    last => last === 'accepted',
  )
  const reads = async () => {
    const { rows } = await settings.admin.query(
      'select applied, beat::text, (select max(seq) from changes) as newest from members',
    )
    return rows[0]
  }
  const { beat } = await reads()
  const row = await eventually(reads, one => one.beat !== beat)
  t.ok(Number(row.applied) <= Number(row.newest), `${row.applied} of ${row.newest}`)
  gate.resolve()
  await serves(store)
  await store.agents.update('a1', { status: 'Revoked' }, entry('agent.revoke'))
})

t.test('a gateway whose turn fails after the loss was accepted goes on with the new history', async t => {
  const { settings, a, b, putBack } = await fleet(t)
  const { admin } = settings
  await revoke(a.store)
  await putBack()
  await Promise.all([serves(a.store, false), serves(b.store, false)])
  // A turn that finds the new history enters its gateway again, and fails while it cannot.
  await admin.query('begin')
  await admin.query('select pg_advisory_xact_lock($1)', [registerLock])
  await acceptLoss(settings, false, Date.now())
  const waiting = () => admin.query(`select pid from pg_locks where locktype = 'advisory' and not granted`)
  const first = (await eventually(waiting, ({ rows }) => rows.length === 2)).rows.map(({ pid }) => pid)
  await eventually(waiting, ({ rows }) => !rows.some(({ pid }) => first.includes(pid)))
  await admin.query('commit')
  await Promise.all([serves(a.store), serves(b.store)])
  t.strictSame([a.told.length, b.told.length], [2, 2], 'one loss, accepted once')
})
