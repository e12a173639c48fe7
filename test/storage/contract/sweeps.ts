import type { Test } from 'tap'
import type { Deadlines, Store } from '../../../src/storage/store.ts'
import { approve, deny, type Engine, entry, lapse, settle, suspend } from './samples.ts'

const early: Deadlines = { now: 1_500, decided: 0, delivered: 0, max: 100 }

const due = async (store: Store, over: Partial<Deadlines> = {}): Promise<string> => {
  const found = Object.entries(await store.hitl.due({ ...early, ...over }))
  return found.flatMap(([name, isDue]) => (isDue ? [name] : [])).join()
}

const grant = (id: string, over: object = {}) => ({
  ...{ id, agentId: 'a1', policyName: 'p', rule: '', method: 'POST', origin: 'o', path: '/', maxUses: 1, uses: 0 },
  ...{ hitlId: 'h', credentials: '', grantedBy: 'r', createdAt: 1_000, expiresAt: 2_000, ...over },
})

/** @param other another store on the same data */
export function sweeps(t: Test, engine: Engine, other: Store): void {
  t.test('a look says what is due, and nothing when nothing is', async t => {
    const store = await engine(t)
    t.equal(await due(store, { now: 9_999, decided: 9_999, delivered: 9_999 }), '')
    await suspend(store, 'h1')
    t.equal(await due(store, { now: 1_999 }), '')
    t.equal(await due(store, { now: 2_000 }), 'expire')
    await approve(store, 'h1')
    t.equal(await due(store, { now: 1_599, decided: 9_999 }), '', 'what is in flight stays')
    t.equal(await due(store, { now: 1_600 }), 'lapse')
    await lapse(store, 1_600)
    await settle(store, 'h1', 1, 'completed')
    t.equal(await due(store, { decided: 1_500 }), '')
    t.equal(await due(store, { decided: 1_501 }), 'prune')
    t.equal(await due(store, { delivered: 1_001 }), 'deliveries')
    t.equal(await due(store, { max: 1 }), 'deliveries')
    await store.grants.insert(grant('g1'), entry('grant.create'))
    t.equal(await due(store, { now: 1_999 }), '')
    t.equal(await due(store, { now: 2_000 }), 'grants')
    const key = { agentId: 'a1', key: 'k', expiresAt: 1_700 }
    await store.grants.insert(grant('g2', { expiresAt: 9_000, maxUses: 2 }), entry('grant.create'))
    await store.grants.use('g2', { now: 1_500, key }, entry('grant.use'))
    t.equal(await due(store, { now: 1_700 }), 'grants', 'for the key')
    await store.grants.use('g2', { now: 1_500 }, entry('grant.use'))
    t.equal(await due(store), 'grants', 'for a grant that is used up')
  })

  t.test('sweeps of several gateways at once do each thing once', async t => {
    const store = await engine(t)
    const ids = Array.from({ length: 30 }, (_, n) => `h${n}`)
    for (const id of ids) await suspend(store, id)
    for (const id of ids.slice(0, 10)) await deny(store, id)
    for (const id of ids.slice(0, 10)) await store.grants.insert(grant(`g${id}`), entry('grant.create'))
    const both = <T>(call: (on: Store) => Promise<T>) => Promise.all([store, other, store, other].map(call))
    const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0)
    const expired = (await both(on => on.hitl.expire(2_000, 5))).flat()
    expired.push(...(await store.hitl.expire(2_000, 100)))
    t.strictSame(expired.toSorted(), ids.slice(10).toSorted())
    t.equal(sum(await both(on => on.hitl.prune(9_999, 7))) + (await store.hitl.prune(9_999, 100)), 30)
    t.equal(sum(await both(on => on.grants.prune(2_000, 3))) + (await store.grants.prune(2_000, 100)), 10)
    const dropped = (await both(on => on.deliveries.prune(0, 25))).flat()
    dropped.push(...(await store.deliveries.prune(0, 25)))
    t.equal(sum(dropped.filter(({ hook }) => hook === 'new').map(({ count }) => count)), 5)
    t.equal((await other.deliveries.next('new', 100)).length, 25)
  })
}
