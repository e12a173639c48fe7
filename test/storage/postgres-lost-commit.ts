/** A COMMIT whose answer does not come: the caller is told so within two seconds, and what it finds then stays true. */

import t, { type Test } from 'tap'
import type { Store } from '../../src/storage/store.ts'
import { eventually } from '../fixtures/gateway.ts'
import { impatient, openProxied } from '../fixtures/proxied-store.ts'
import type { TcpProxy } from '../fixtures/tcp-proxy.ts'
import { actions, agent, approve, entry, get, suspend } from './contract/samples.ts'

const isCommit = (data: Buffer) => data.includes('commit\0')
const register = (store: Store) => store.agents.insert(agent('a1'), 'h', entry('agent.register'))

async function inDoubt(t: Test, work: Promise<unknown>): Promise<void> {
  await t.rejects(work, { name: 'StoreError', inDoubt: true, message: /whether it was done is unknown/ })
}

/** Outcomes of writes in doubt that are known by now. */
function outcomes(admin: { query(text: string): Promise<{ rows: unknown[] }> }, outcome: string): Promise<unknown[]> {
  return eventually(
    async () => (await admin.query(`select outcome from writes where outcome = '${outcome}'`)).rows,
    rows => rows.length > 0,
  )
}

t.test('a COMMIT that was held up never commits later', async t => {
  const { proxy, direct, store, admin } = await openProxied(t, impatient)
  let held = false
  proxy.onSend = data => {
    held ||= isCommit(data)
    return !isCommit(data)
  }
  await inDoubt(t, register(store))
  t.ok(held)
  proxy.onSend = () => true
  t.equal((await outcomes(admin, 'dead')).length, 1)
  proxy.release()
  t.strictSame(await direct.agents.all(), [])
  t.equal(await register(store), 'stored', 'and can be repeated')
  t.strictSame(await actions(direct), ['agent.register'])
})

function losesAnswer(proxy: TcpProxy): void {
  proxy.onSend = data => {
    if (isCommit(data)) proxy.answers = false
    return true
  }
}

t.test('a COMMIT whose answer was lost is found, and is in force as soon as the database is reached again', async t => {
  const { proxy, direct, store } = await openProxied(t, impatient)
  const shown: string[] = []
  const end = await store.feed.agents.follow({
    load: () => undefined,
    change(key, now) {
      shown.push(`${key} ${now?.status}`)
      return undefined
    },
  })
  t.teardown(end)
  losesAnswer(proxy)
  await inDoubt(t, register(store))
  t.strictSame(
    (await direct.agents.all()).map(({ id }) => id),
    ['a1'],
  )
  proxy.onSend = () => true
  proxy.answers = true
  proxy.cut()
  await eventually(
    async () => shown.length,
    count => count === 1,
  )
  t.strictSame(shown, ['a1 Active'])
  t.equal(await eventually(() => register(store).catch(() => undefined), Boolean), 'exists')
  t.strictSame(await actions(direct), ['agent.register'])
})

t.test('a claim that was committed, and that nobody acts on, is released', async t => {
  const { proxy, direct, store } = await openProxied(t, impatient)
  await suspend(store, 'h1')
  losesAnswer(proxy)
  await inDoubt(t, approve(store, 'h1'))
  t.match(await get(direct, 'h1'), { status: 'Approved', replay: 'inFlight' })
  proxy.onSend = () => true
  proxy.answers = true
  proxy.cut()
  await eventually(
    () => get(direct, 'h1'),
    ({ status }) => status === 'Pending',
  )
  t.strictSame(await actions(direct), ['hitl.suspend', 'hitl.approve', 'hitl.release'])
  t.match(await approve(direct, 'h1'), { claimed: { attempt: 2 } }, 'and can be approved')
})

t.test('a claim is released although the COMMIT of the release is lost as well', async t => {
  const { proxy, direct, store } = await openProxied(t, impatient)
  await suspend(store, 'h1')
  losesAnswer(proxy)
  await inDoubt(t, approve(store, 'h1'))
  let lost = 0
  proxy.onSend = data => lost > 0 || !data.includes('hitl.release') || lost++ > 0
  proxy.answers = true
  proxy.cut()
  await eventually(
    () => get(direct, 'h1'),
    ({ status }) => status === 'Pending',
  )
  t.equal(lost, 1)
  t.strictSame(await actions(direct), ['hitl.suspend', 'hitl.approve', 'hitl.release'])
})

const grant = {
  ...{ id: 'g1', agentId: 'a1', policyName: 'p', rule: '', method: 'POST', origin: 'o', path: '/', maxUses: 9 },
  ...{ uses: 0, hitlId: 'h', credentials: '', grantedBy: 'r', createdAt: 1_000, expiresAt: 9_000 },
}

t.test('a use of a grant is not given back twice when the answer of the first time is lost as well', async t => {
  const { proxy, direct, store } = await openProxied(t, impatient)
  await store.grants.insert({ ...grant, uses: 2 }, entry('grant.create'))
  losesAnswer(proxy)
  const key = { agentId: 'a1', key: 'k', expiresAt: 9_000 }
  await inDoubt(t, store.grants.use('g1', { now: 1_500, key }, entry('grant.use')))
  let isGivenBack = false
  proxy.onSend = data => {
    isGivenBack ||= data.includes('hitl.grant.giveBack')
    if (isGivenBack && isCommit(data)) proxy.answers = false
    return true
  }
  proxy.answers = true
  proxy.cut()
  await eventually(
    () => direct.grants.list(1_500),
    ([now]) => now?.uses === 2,
  )
  let isTriedAgain = false
  proxy.onSend = data => {
    isTriedAgain ||= data.includes('delete from "granted_keys"')
    return true
  }
  proxy.answers = true
  proxy.cut()
  await eventually(async () => isTriedAgain, Boolean)
  t.match(await direct.grants.use('g1', { now: 1_500 }, entry('grant.use')), { uses: 3 })
})

t.test('a use of a grant that was committed, and let nothing pass, is given back with its idempotency key', async t => {
  const { proxy, direct, store } = await openProxied(t, impatient)
  await store.grants.insert(grant, entry('grant.create'))
  losesAnswer(proxy)
  const key = { agentId: 'a1', key: 'k', expiresAt: 9_000 }
  await inDoubt(t, store.grants.use('g1', { now: 1_500, key }, entry('grant.use')))
  t.strictSame(await direct.hitl.keyHolder('a1', 'k', 1_500), { hitlId: null })
  proxy.onSend = () => true
  proxy.answers = true
  proxy.cut()
  const holder = await eventually(
    () => direct.hitl.keyHolder('a1', 'k', 1_500),
    holder => holder === undefined,
  )
  t.equal(holder, undefined)
  t.match(await direct.grants.list(1_500), [{ uses: 0 }], 'the use is given back')
})

t.test('a connection that breaks before its COMMIT leaves nothing, and that is certain', async t => {
  const { proxy, direct, store } = await openProxied(t, impatient)
  proxy.onSend = data => {
    if (!data.includes('insert into "agents"')) return true
    proxy.cut()
    return false
  }
  await t.rejects(register(store), { name: 'StoreError', inDoubt: false })
  proxy.onSend = () => true
  t.strictSame(await direct.agents.all(), [])
  t.equal(await eventually(() => register(store).catch(() => undefined), Boolean), 'stored')
})

t.test('a notice that comes with COMMIT counts as no answer', async t => {
  const { store, admin, direct } = await openProxied(t, impatient)
  // As the server does when it is told to wait no longer for a standby.
  await admin.query(`create function complain() returns trigger language plpgsql as $$
    begin raise warning 'canceling wait for synchronous replication due to user request'; return null; end $$`)
  await admin.query(
    'create constraint trigger complains after insert on agents deferrable initially deferred for each row execute function complain()',
  )
  await inDoubt(t, register(store))
  t.equal((await direct.agents.all()).length, 1)
  t.equal((await outcomes(admin, 'done')).length, 1)
})

t.test('a write behind a lock that nobody releases is given up and not done later', async t => {
  const { store, direct, admin } = await openProxied(t, impatient)
  await register(store)
  await admin.query('begin')
  await admin.query(`select from agents where id = 'a1' for update`)
  const lost = store.agents.update('a1', { status: 'Revoked' }, entry('agent.revoke'))
  t.match(await lost.catch((error: unknown) => error), { inDoubt: false })
  await admin.query('commit')
  t.match(await direct.agents.all(), [{ status: 'Active' }])
  t.match(await store.agents.update('a1', { status: 'Revoked' }, entry('agent.revoke')), { status: 'Revoked' })
  t.strictSame(await actions(direct), ['agent.register', 'agent.revoke'])
})
