import type { Test } from 'tap'
import type { HitlCall, Store } from '../../../src/storage/store.ts'
import { deny, type Engine, entry, get, suspend } from './samples.ts'

const over = { repeatDigest: 'same' }
const key = 'ab'.repeat(32)

/** A call that waits has ended unanswered; the last one of its gateway. */
const leave = (store: Store, id: string, more: { isLast?: boolean; isAnswered?: boolean; cancelKey?: string } = {}) =>
  store.hitl.leave(
    id,
    { agentId: 'a1', now: 1_500, isLast: true, isAnswered: false, ...more },
    entry('hitl.withdraw', { subject: id, details: { cause: 'left' } }),
  )

/** Suspends the same request in one gateway or the other. */
const call = (store: Store, id: string, kind: HitlCall['kind'] = 'waits', more: object = {}) =>
  suspend(store, id, { ...over, call: { kind }, ...more })

const status = async (store: Store, id: string) => (await get(store, id)).status

/** Whether the stores are of two gateways. */
const areTwo = (other: Store) => 'fence' in other

export function calls(t: Test, engine: Engine, other: Store): void {
  t.test('the last call of all gateways that leaves withdraws its item', async t => {
    const store = await engine(t)
    t.equal(await call(store, 'h1'), 'stored')
    t.match(await call(other, 'h2'), { existing: { id: 'h1' } })
    t.equal(await leave(store, 'h1', { isLast: areTwo(other) }), 'held')
    t.equal(await status(store, 'h1'), 'Pending')
    t.match(await leave(other, 'h1'), { withdrawn: { status: 'Withdrawn' } })
    t.equal(await call(store, 'h3'), 'stored', 'nobody joins it any more')
    t.equal(await leave(store, 'none'), 'notFound')
    await deny(store, 'h3')
    t.match(await leave(store, 'h3'), { lost: { status: 'Denied' } })
  })

  t.test('an item whose id a caller knows stays when calls leave', async t => {
    const store = await engine(t)
    for (const [id, told] of [
      ['polled', () => call(other, 'x', 'polls', { repeatDigest: 'polled' })],
      ['unjoined', () => other.hitl.unjoin('unjoined')],
    ] as const) {
      await call(store, id, 'waits', { repeatDigest: id })
      await told()
      t.equal(await leave(store, id), 'held')
      t.equal(await status(store, id), 'Pending', id)
    }
    await call(store, 'keyed', 'waits', { idempotencyKey: 'k' })
    t.match(await call(other, 'again', 'waits', { idempotencyKey: 'k' }), { existing: { id: 'keyed' } })
    t.equal(await leave(store, 'keyed'), 'held')
    await call(store, 'h1', 'polls')
    t.equal(await leave(store, 'h1'), 'held')
  })

  t.test('a call that was asked to try again leaves without a trace', async t => {
    const store = await engine(t)
    await call(store, 'h1')
    t.equal(await leave(store, 'h1', { isAnswered: true }), 'held')
    t.match(await call(other, 'h2'), { existing: { id: 'h1' } })
    t.match(await leave(other, 'h1'), { withdrawn: {} })
    await call(store, 'h3', 'retries')
    await call(other, 'h4', 'waits')
    t.match(await leave(other, 'h3'), { withdrawn: {} })
  })

  t.test('a call that waits is found by its key in every gateway, until it ends', async t => {
    const store = await engine(t)
    const found = (agentId = 'a1', now = 1_500, on = other) => on.hitl.waitedFor(agentId, key, now)
    await call(store, 'h1')
    await call(store, 'h2', 'waits', { call: { kind: 'waits', cancelKey: key } })
    t.strictSame([await found(), await found('a1', 1_500, store)], ['h1', 'h1'])
    t.strictSame([await found('a2'), await found('a1', 2_000)], [undefined, undefined])
    t.equal(await leave(store, 'h1', { isLast: false, cancelKey: key }), 'held')
    t.equal(await found(), undefined)
    await call(other, 'h3', 'waits', { call: { kind: 'waits', cancelKey: key } })
    await deny(store, 'h1')
    t.equal(await found(), undefined)
  })

  t.test('of a call that joins and the last one that leaves, both see the same', async t => {
    const store = await engine(t)
    for (let n = 0; n < 20; n++) {
      const more = { repeatDigest: `race ${n}` }
      await call(store, `r${n}`, 'waits', more)
      const [joined, left] = await Promise.all([call(other, `n${n}`, 'waits', more), leave(store, `r${n}`)])
      const isJoined = typeof joined === 'object'
      if (!areTwo(other)) continue
      t.equal(left === 'held', isJoined, `${n}`)
      t.equal(await status(store, isJoined ? `r${n}` : `n${n}`), 'Pending')
    }
    t.pass()
  })
}
