import type { Test } from 'tap'
import { verifyTrail } from '../../../src/audit/trail.ts'
import type { GrantRecord, Store } from '../../../src/storage/store.ts'
import { approve, type Engine, entry, get, settle, suspend, trail } from './samples.ts'

const grant = (id: string, maxUses: number): GrantRecord => ({
  ...{ id, agentId: 'a1', policyName: 'p', rule: '', method: 'POST', origin: 'o', path: '/', maxUses, uses: 0 },
  ...{ hitlId: 'h', credentials: '', grantedBy: 'r', createdAt: 1_000, expiresAt: 9_000 },
})

/** Calls about held requests and grants that come over two stores on the same data at the same time. */
export function requestRaces(t: Test, engine: Engine, other: Store): void {
  const over = <T>(count: number, store: Store, call: (store: Store, n: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: count }, (_, n) => call(n % 2 === 0 ? store : other, n)))

  t.test('grants are used as often as they allow, in any order, with keys and without', async t => {
    const store = await engine(t)
    const ids = ['g1', 'g2', 'g3']
    for (const id of ids) await store.grants.insert(grant(id, 9), entry('grant.create'))
    const results = await over(72, store, (on, n) => {
      const key = n % 5 === 0 ? undefined : { agentId: 'a1', key: `k${n}`, expiresAt: 9_000 }
      const id = ids[(n * 7) % 3]!
      return on.grants.use(id, { now: 1_500, key }, entry('grant.use', { actor: 'a1', subject: id }))
    })
    t.equal(results.filter(result => typeof result === 'object').length, 27)
    t.strictSame(await store.grants.list(1_500), [])
    const uses = (await trail(store)).flatMap(({ action, subject, details }) =>
      action === 'grant.use' ? [`${subject} ${details['uses']}`] : [],
    )
    t.equal(new Set(uses).size, 27, 'each use has its own number')
  })

  t.test('a grant that is removed is not used afterwards', async t => {
    const store = await engine(t)
    await store.grants.insert(grant('g1', 1_000), entry('grant.create'))
    const use = (on: Store) => on.grants.use('g1', { now: 1_500 }, entry('grant.use', { actor: 'a1' }))
    const [, removed] = await Promise.all([over(20, store, use), other.grants.remove('g1', entry('grant.revoke'))])
    t.equal(removed, true)
    t.strictSame(await over(4, store, use), [undefined, undefined, undefined, undefined])
    const actions = (await trail(store)).map(({ action }) => action)
    t.equal(actions.at(-1), 'grant.revoke')
  })

  t.test('of resends at the same time one claims the request', async t => {
    const store = await engine(t)
    for (let n = 0; n < 6; n++) {
      const id = `h${n}`
      await suspend(store, id)
      await approve(store, id)
      await settle(store, id, 1, 'failed')
      const results = await over(6, store, (on, who) => approve(on, id, { reviewer: `r${who}`, resend: true }))
      t.equal(results.filter(result => typeof result === 'object' && 'claimed' in result).length, 1)
      t.match(await get(store, id), { attempt: 2, replay: 'inFlight' })
    }
  })

  t.test('an attempt has one end, whoever records it', async t => {
    const store = await engine(t)
    const ids = Array.from({ length: 7 }, (_, n) => `h${n}`)
    for (const id of ids) {
      await suspend(store, id, { expiresAt: 9_000 })
      await approve(store, id)
    }
    const ends = await over(ids.length * 2, store, async (on, n) => {
      const id = ids[n % ids.length]!
      return n < ids.length
        ? settle(on, id, 1, 'completed')
        : on.hitl.release(id, 1, entry('hitl.release', { subject: id }))
    })
    t.equal(ends.filter(Boolean).length, ids.length)
    const told = (await trail(store)).filter(({ action }) => action === 'hitl.replay' || action === 'hitl.release')
    t.strictSame(told.map(({ subject }) => subject).sort(), ids)
    const waiting = told.filter(({ action }) => action === 'hitl.release').length
    t.equal(await store.hitl.countPending(1_500), waiting)
  })

  t.test('the key of an expired request is taken by one other, and the request ends once', async t => {
    const store = await engine(t)
    for (const key of ['k1', 'k2', 'k3']) {
      await suspend(store, `${key} old`, { idempotencyKey: key })
      const late = { idempotencyKey: key, createdAt: 3_000, expiresAt: 9_000 }
      const results = await over(6, store, (on, n) => suspend(on, `${key} ${n}`, late))
      t.equal(results.filter(result => result === 'stored').length, 1)
    }
    const expired = (await trail(store)).filter(({ action }) => action === 'hitl.expire')
    t.strictSame(expired.map(({ subject }) => subject).sort(), ['k1 old', 'k2 old', 'k3 old'])
    t.equal(await store.hitl.countPending(3_500), 3)
    t.match(await verifyTrail(store.audit), { ok: true })
  })
}
