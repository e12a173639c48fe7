/** Writes of agents that come at the same time share transactions, and none of them suffers from another one. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { verifyTrail } from '../../src/audit/trail.ts'
import { schemaLock } from '../../src/storage/postgres/commit-write.ts'
import type { HitlRecord, Store } from '../../src/storage/store.ts'
import { eventually } from '../fixtures/gateway.ts'
import { impatient, openProxied } from '../fixtures/proxied-store.ts'
import type { TcpProxy } from '../fixtures/tcp-proxy.ts'
import { actions, approve, entry, get, pending, roomy, sealed, suspend, trail } from './contract/samples.ts'

/** Suspends requests of different agents at once. */
function suspendAll(store: Store, count: number, over: (n: number) => Partial<HitlRecord> = () => ({})) {
  return Promise.allSettled(
    Array.from({ length: count }, (_, n) => suspend(store, `h${n}`, { agentId: `a${n}`, ...over(n) })),
  )
}

/** A write that others wait behind, to go into the next transaction together. */
const busy = (store: Store, round = 0) => suspend(store, `busy ${round}`, { agentId: 'busy' })

const stored = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.filter(result => result.status === 'fulfilled' && result.value === 'stored').length

t.test('writes at the same time share transactions; each has its own result, row and record', async t => {
  const { store, admin } = await openProxied(t)
  t.equal(stored(await suspendAll(store, 100)), 100)
  const { rows } = await admin.query('select count(*)::int as transactions from writes')
  t.ok(rows[0].transactions <= 10, `${rows[0].transactions} transactions`)
  t.equal(await store.hitl.countPending(1_500), 100)
  const results = await Promise.all(Array.from({ length: 100 }, (_, n) => approve(store, `h${n}`)))
  for (const [n, result] of results.entries()) t.match(result, { claimed: { id: `h${n}`, agentId: `a${n}` } })
  const subjects = (await trail(store)).map(({ subject }) => subject)
  t.equal(new Set(subjects).size, 100)
  t.match(await verifyTrail(store.audit), { ok: true, entries: 200 })
})

t.test('writes with one key share transactions too, one after the other', async t => {
  const { store, admin } = await openProxied(t)
  await suspend(store, 'h1', { approvalsNeeded: 3 })
  const all = await Promise.all(Array.from({ length: 24 }, (_, n) => approve(store, 'h1', { reviewer: `r${n}` })))
  const outcomes = Object.groupBy(
    all.map(result => Object.keys(result)[0]!),
    outcome => outcome,
  )
  t.match([outcomes['waiting']?.length, outcomes['claimed']?.length, outcomes['lost']?.length], [2, 1, 21])
  const { rows } = await admin.query('select count(*)::int as transactions from writes')
  t.ok(rows[0].transactions <= 10, `${rows[0].transactions} transactions`)
  t.match(await verifyTrail(store.audit), { ok: true, entries: 4 })
})

t.test('one that cannot be written does not take the others with it', async t => {
  const { store } = await openProxied(t)
  const bad = store.hitl.insert(pending('bad'), sealed, roomy, entry('hitl.suspend', { details: { big: 1n } }))
  const long = suspend(store, 'long', { agentId: 'long', idempotencyKey: 'k'.repeat(10_000) })
  const [results] = await Promise.all([suspendAll(store, 20), t.rejects(bad), long.catch(() => {})])
  t.equal(stored(results), 20)
  t.equal(await store.hitl.get('bad', 1_500), undefined)
  t.match(await verifyTrail(store.audit), { ok: true })
})

t.test('limits hold within one transaction', async t => {
  const { store } = await openProxied(t)
  const insert = (n: number, maxPending: number) => {
    const limits = { ...roomy, maxPending, maxPendingOfAgent: 200 }
    return store.hitl.insert(pending(`h${n}`), sealed, limits, entry('hitl.suspend'))
  }
  const results = await Promise.all(Array.from({ length: 32 }, (_, n) => insert(n, 5)))
  t.equal(results.filter(result => result === 'stored').length, 5)
  t.equal(results.filter(result => result === 'queueFull').length, 27)
  const more = await Promise.all(Array.from({ length: 40 }, (_, n) => insert(n + 32, 35)))
  t.equal(more.filter(result => result === 'stored').length, 30)
})

t.test('a key whose lock another gateway holds is waited for by its own request alone', async t => {
  const { store, admin } = await openProxied(t)
  const lock = `hashtextextended('a1 k', (select ${schemaLock}))`
  await admin.query(`select pg_advisory_lock(${lock})`)
  let isHeld = true
  const waits = suspend(store, 'waits', { idempotencyKey: 'k' }).finally(() => t.equal(isHeld, false))
  const others = await suspendAll(store, 40, n => ({ agentId: `b${n}`, idempotencyKey: 'k' }))
  t.equal(stored(others), 40)
  isHeld = false
  await admin.query(`select pg_advisory_unlock(${lock})`)
  t.equal(await waits, 'stored')
})

t.test('a key is held or used once, also by requests and grants of one transaction', async t => {
  const { store } = await openProxied(t)
  const grant = {
    ...{ agentId: 'a1', policyName: 'p', rule: '', method: 'POST', origin: 'o', path: '/', maxUses: 99, uses: 0 },
    ...{ hitlId: 'h', credentials: '', grantedBy: 'r', createdAt: 1_000, expiresAt: 9_000 },
  }
  for (let n = 0; n < 4; n++) await store.grants.insert({ ...grant, id: `g${n}` }, entry('grant.create'))
  const use = (n: number) =>
    store.grants.use(`g${n}`, { now: 1_500, key: { agentId: 'a1', key: 'k', expiresAt: 9_000 } }, entry('grant.use'))
  const [, ...results] = await Promise.all([
    busy(store),
    ...Array.from({ length: 4 }, (_, n) => use(n)),
    ...Array.from({ length: 4 }, (_, n) => suspend(store, `h${n}`, { idempotencyKey: 'k' })),
  ])
  t.equal(results.filter(result => result === 'stored' || (typeof result === 'object' && 'uses' in result)).length, 1)
  const uses = await Promise.all(Array.from({ length: 12 }, () => store.grants.use('g3', { now: 1_500 }, entry('u'))))
  const counted = uses.map(used => (typeof used === 'object' ? used.uses : 0)).sort((a, b) => a - b)
  t.equal(new Set(counted).size, 12)
})

t.test('an agent with many writes at once is refused some of them, and others are not', async t => {
  const { store } = await openProxied(t)
  await suspend(store, 'h-verdict', { agentId: 'a2' })
  const flood = Promise.allSettled(Array.from({ length: 300 }, (_, n) => suspend(store, `f${n}`)))
  const [own, person] = await Promise.all([suspend(store, 'h-own', { agentId: 'a2' }), approve(store, 'h-verdict')])
  t.equal(own, 'stored')
  t.match(person, { claimed: { id: 'h-verdict' } })
  const refused = (await flood).filter(({ status }) => status === 'rejected')
  t.equal(refused.length, 300 - 64)
  t.match(refused[0], { reason: { name: 'StoreError', inDoubt: false } })
  t.equal(await suspend(store, 'h-after'), 'stored')
})

/** Calls `then` with each COMMIT but the first one. */
function afterFirst(proxy: TcpProxy, then: () => boolean): void {
  let commits = 0
  proxy.onSend = data => !data.includes('commit\0') || commits++ === 0 || then()
}

t.test('a COMMIT without an answer leaves all of its writes in doubt, and each is taken back that must be', async t => {
  const { proxy, direct, store } = await openProxied(t, impatient)
  await suspendAll(direct, 12)
  await suspend(direct, 'first')
  afterFirst(proxy, () => {
    proxy.answers = false
    return true
  })
  const first = approve(store, 'first')
  const claims = await Promise.allSettled(Array.from({ length: 12 }, (_, n) => approve(store, `h${n}`)))
  t.match(await first, { claimed: { id: 'first' } })
  for (const claim of claims) t.match(claim, { status: 'rejected', reason: { name: 'StoreError', inDoubt: true } })
  proxy.onSend = () => true
  proxy.answers = true
  proxy.cut()
  for (let n = 0; n < 12; n++) {
    const { replay } = await eventually(
      () => get(direct, `h${n}`),
      ({ status }) => status === 'Pending',
    )
    t.equal(replay, null)
  }
  const released = (await trail(direct)).filter(({ action }) => action === 'hitl.release')
  t.equal(released.length, 12)
  t.match(await get(direct, 'first'), { status: 'Approved' })
})

t.test('a COMMIT that was held up commits none of its writes later', async t => {
  const { proxy, direct, store, admin } = await openProxied(t, impatient)
  afterFirst(proxy, () => false)
  const first = busy(store)
  const results = await suspendAll(store, 12)
  t.equal(await first, 'stored')
  for (const result of results) t.match(result, { status: 'rejected', reason: { inDoubt: true } })
  proxy.onSend = () => true
  await eventually(
    async () => (await admin.query(`select from writes where outcome = 'dead'`)).rowCount,
    count => count !== 0,
  )
  proxy.release()
  t.equal(await direct.hitl.countPending(1_500), 1)
  t.strictSame(await actions(direct), ['hitl.suspend'])
  t.equal(stored(await suspendAll(direct, 12)), 12, 'and can be repeated')
})

t.test('a write that is given up ends none of those that share its transaction', async t => {
  // Each is given up after 1.05 s, and the server ends a transaction that is idle for 1 s.
  const { proxy, store } = await openProxied(t, { timeoutSeconds: 1.4 })
  const share = async (round: number) => {
    proxy.onSend = data => !data.includes('commit\0')
    const first = busy(store, round)
    const old = suspend(store, `old ${round}`, { agentId: 'a1' })
    // The younger one comes while the older one waits, and has time left when that one is given up.
    await sleep(500)
    const young = suspend(store, `young ${round}`, { agentId: 'a2' })
    proxy.release()
    const [freed, given] = await Promise.allSettled([first, old])
    proxy.onSend = () => true
    proxy.release()
    const [kept] = await Promise.allSettled([young])
    return [freed, given, kept]
  }
  const isShared = (outcome: Awaited<ReturnType<typeof share>>) =>
    outcome.map(({ status }) => status).join() === 'fulfilled,rejected,fulfilled'
  // A machine that is busy gets more attempts.
  let outcome = await share(0)
  for (let round = 1; round < 20 && !isShared(outcome); round++) outcome = await share(round)
  t.match(outcome, [{ value: 'stored' }, { status: 'rejected', reason: { name: 'StoreError' } }, { value: 'stored' }])
})

t.test('writes that are under way when the store closes are done or refused, as they were answered', async t => {
  const { direct, store } = await openProxied(t)
  const all = suspendAll(store, 100)
  const closed = store.close()
  const results = await all
  await closed
  t.equal(await direct.hitl.countPending(1_500), stored(results))
  await t.rejects(suspend(store, 'late'), { name: 'StoreError' })
})
