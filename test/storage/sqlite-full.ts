/** Threat T45 of SECURITY.md. */

import t, { type Test } from 'tap'
import { verifyTrail } from '../../src/audit/trail.ts'
import { type Store, StoreError } from '../../src/storage/store.ts'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'
import { approve, deny, entry, get, pending, roomy, sealed, suspend, trail } from './contract/samples.ts'

/** A store of 560 KiB that is filled up to the last page, with the ids of what is in it. */
async function full(t: Test): Promise<{ store: Store; ids: string[] }> {
  const store = await openSqliteStore({ directory: testdir(t), maxPages: 140 })
  t.teardown(() => store.close())
  const ids: string[] = []
  for (const body of ['x'.repeat(20_000), '']) {
    for (let n = 0; ; n++) {
      const id = `${body.length}-${n}`
      const stored = await suspend(store, id, { body }).catch(error => error)
      if (stored instanceof StoreError) break
      ids.push(id)
    }
  }
  return { store, ids }
}

t.test('on a full disk every write is refused, none is half done, and reading goes on', async t => {
  const { store, ids } = await full(t)
  const before = await trail(store)
  const first = ids[0]!
  const long = entry('hitl.deny', { details: { comment: 'x'.repeat(20_000) } })
  await t.rejects(store.hitl.deny(first, { reviewer: 'r', comment: null, now: 1_500 }, long), { name: 'StoreError' })
  await t.rejects(suspend(store, 'new', { body: 'x'.repeat(20_000) }), { name: 'StoreError', message: /full/ })
  await t.rejects(store.ping(), { name: 'StoreError', message: /full/ })
  t.match(await get(store, first), { status: 'Pending', decidedBy: null })
  t.strictSame(await store.hitl.sealed(first), sealed)
  t.strictSame(await trail(store), before)
  t.equal((await store.hitl.pending(1_500)).length, ids.length)
})

t.test('once there is room again writing goes on without a restart', async t => {
  const { store, ids } = await full(t)
  t.strictSame(await store.hitl.expire(9_000, 5), ids.slice(0, 5), 'removing frees the room that its record needs')
  await store.ping()
  t.equal(await suspend(store, 'new', { body: 'x'.repeat(20_000) }), 'stored')
  t.match(await approve(store, 'new'), { claimed: { id: 'new' } })
  t.match(await verifyTrail(store.audit), { ok: true })
})

t.test('the write that does not fit takes none of those it shares a commit with along', async t => {
  const { store } = await full(t)
  await store.hitl.expire(9_000, 1)
  const huge = store.hitl.insert(pending('huge', { body: 'x'.repeat(500_000) }), sealed, roomy, entry('s'))
  const results = await Promise.allSettled([suspend(store, 'b1'), huge, suspend(store, 'b2'), deny(store, 'b1')])
  t.strictSame(
    results.map(result => result.status),
    ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  )
  t.match(await get(store, 'b1'), { status: 'Denied' })
  t.match(await get(store, 'b2'), { status: 'Pending' })
  t.match(await verifyTrail(store.audit), { ok: true })
})
