/** Threat T23 of SECURITY.md. */

import type { Test } from 'tap'
import type { Store } from '../../../src/storage/store.ts'
import { actions, approve, deny, type Engine, entry, pending, roomy, suspend } from './samples.ts'

/** Runs a statement on the database behind the engine. */
export type Query = (text: string) => Promise<readonly object[]>

const counted = `select "agentId", bytes from hitl_totals where bytes <> 0 order by "agentId"`
/** What the rows take, by their own texts and bytes. */
const stored = `with each as (select "agentId",
    1024 + octet_length(url) + octet_length(reason) + octet_length(decision) + octet_length(summary)
    + coalesce((select octet_length(headers) + octet_length(body) + octet_length(places) from hitl_shown s where s.id = hitl.id), 0)
    + coalesce((select coalesce(octet_length(request), 0) + coalesce(octet_length(response), 0)
      from hitl_sealed s where s.id = hitl.id), 0) as bytes from hitl)
  select * from (select '' as "agentId", sum(bytes) as bytes from each having count(*) > 0
    union all select "agentId", sum(bytes) from each group by "agentId") as x order by "agentId"`

/** @param other another store on the same data */
export function bytes(
  t: Test,
  engine: Engine,
  { other, query }: { readonly other: Store; readonly query: Query },
): void {
  const rowsOf = async (text: string) =>
    (await query(text)).map(row => {
      const { agentId, bytes } = row as { readonly agentId: string; readonly bytes: unknown }
      return { agentId, bytes: Number(bytes) }
    })
  const total = async () => (await rowsOf(counted)).find(({ agentId }) => agentId === '')?.bytes ?? 0
  const withdraw = (store: Store, id: string) =>
    store.hitl.withdraw(id, { agentId: 'a1', now: 1_500 }, entry('hitl.withdraw', { subject: id }))
  const answer = (store: Store, id: string, response: Uint8Array | null) => {
    const replay = response === null ? 'failed' : 'completed'
    const outcome = { replay, responseStatus: null, sealedResponse: response } as const
    return store.hitl.recordOutcome(id, 1, outcome, entry('hitl.replay', { subject: id }))
  }

  t.test('what is counted of requests is what is stored of them, through all that becomes of them', async t => {
    const store = await engine(t)
    const isCounted = async (what: string) => t.strictSame(await rowsOf(counted), await rowsOf(stored), what)
    const long = { url: `https://a.example/${'ä'.repeat(2_000)}`, body: 'x'.repeat(50_000), places: '[[3,4]]' }
    const ids = ['denied', 'withdrawn', 'answered', 'failed', 'released', 'expires', 'stays']
    for (const id of ids) await suspend(store, id, { ...long, idempotencyKey: id })
    await suspend(store, 'others', { agentId: 'a2' })
    await isCounted('held')
    const most = await total()
    t.ok(most > 7 * 50_000)
    await deny(store, 'denied')
    await isCounted('denied')
    await withdraw(store, 'withdrawn')
    await isCounted('withdrawn')
    t.ok((await total()) < most - 50_000, 'its body is gone')
    for (const id of ['answered', 'failed', 'released']) await approve(store, id)
    await isCounted('approved')
    const before = await total()
    await answer(store, 'answered', new Uint8Array(30_000))
    t.ok((await total()) > before + 29_000, 'the answer counts')
    await answer(store, 'failed', null)
    await store.hitl.release('released', 1, entry('hitl.release'))
    await isCounted('sent')
    await Promise.all([store.hitl.extend('stays', { now: 1_500, expiresAt: 9_000 }, entry('hitl.extend'))])
    t.strictSame([...(await store.hitl.expire(2_000, 100))].sort(), ['expires', 'others', 'released'])
    await isCounted('expired')
    await suspend(store, 'again', { ...long, idempotencyKey: 'denied' })
    await isCounted('held before')
    await store.hitl.prune(9_000, 100)
    t.equal((await rowsOf(counted)).length, 2)
    await isCounted('pruned')
    await withdraw(store, 'stays')
    await store.hitl.prune(9_999, 100)
    t.strictSame(await rowsOf(counted), [])
  })

  t.test('a request that takes the place of an expired one counts for itself', async t => {
    const store = await engine(t)
    await suspend(store, 'h1', { idempotencyKey: 'k' })
    await suspend(store, 'h2', { idempotencyKey: 'k', createdAt: 2_000, expiresAt: 3_000 })
    t.strictSame(await rowsOf(counted), await rowsOf(stored))
  })

  t.test('no more than both limits is stored, also of requests that come at once', async t => {
    const store = await engine(t)
    const insert = (on: Store, n: number, agentId: string, limits: Partial<typeof roomy>) =>
      on.hitl.insert(
        pending(`h${10 + n}`, { agentId, body: 'x'.repeat(9_000) }),
        new Uint8Array(100),
        { ...roomy, ...limits },
        entry('hitl.suspend'),
      )
    t.equal(await insert(store, 0, 'a1', {}), 'stored')
    const one = await total()
    t.equal(await insert(store, 1, 'a1', { maxBytesOfAgent: 2 * one - 1 }), 'agentBytesFull')
    t.equal(await insert(store, 1, 'a2', { maxBytes: 2 * one - 1 }), 'bytesFull')
    t.equal(await total(), one, 'nothing of those is kept')
    const limits = { maxBytes: 9 * one, maxBytesOfAgent: 4 * one }
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, n) => insert(n % 2 === 0 ? store : other, n + 1, `a${(n % 4) + 1}`, limits)),
    )
    t.equal(results.filter(result => result === 'stored').length, 8)
    t.ok(results.every(result => ['stored', 'bytesFull', 'agentBytesFull'].includes(String(result))))
    const held = Object.groupBy(await store.hitl.pending(1_500), ({ agentId }) => agentId)
    for (const list of Object.values(held)) t.ok((list ?? []).length <= 4)
    t.strictSame(await rowsOf(counted), await rowsOf(stored))
    t.equal((await actions(store)).length, 9)
  })

  t.test('an agent that holds and withdraws comes to its limit, and has room again when that is pruned', async t => {
    const store = await engine(t)
    const limits = { ...roomy, maxBytesOfAgent: 100_000 }
    let held = 0
    for (; held < 100; held++) {
      const record = pending(`h${held}`, { body: 'x'.repeat(40_000) })
      if ((await store.hitl.insert(record, new Uint8Array(9), limits, entry('hitl.suspend'))) !== 'stored') break
      await withdraw(store, `h${held}`)
    }
    t.ok(held > 10 && held < 100, `${held} lines of withdrawn requests`)
    t.ok((await total()) <= 100_000)
    await store.hitl.prune(9_999, 1_000)
    t.equal(await suspend(store, 'again'), 'stored')
  })
}
