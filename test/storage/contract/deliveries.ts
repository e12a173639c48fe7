import type { Test } from 'tap'
import type { WebhookSubscription } from '../../../src/storage/deliveries.ts'
import type { Store } from '../../../src/storage/store.ts'
import { approve, deny, type Engine, suspend } from './samples.ts'

/** The hooks of the gateways in these tests. */
export const subscriptions: readonly WebhookSubscription[] = [
  { hook: 'all', types: ['pending', 'approved', 'denied'] },
  { hook: 'new', types: ['pending'] },
]

const waiting = async (store: Store, hook: string, limit = 100) =>
  (await store.deliveries.next(hook, limit)).map(({ note: { type, hitlId } }) => `${type} ${hitlId}`)

const lease = (owner: string, now: number) => ({ owner, now, until: now + 30 })

export function deliveries(t: Test, engine: Engine): void {
  t.test(
    'an event waits for each hook that is told of it, in the order of the commits, until it is removed',
    async t => {
      const store = await engine(t)
      for (const id of ['h1', 'h2']) await suspend(store, id)
      await deny(store, 'h2')
      await approve(store, 'h1')
      t.strictSame(await waiting(store, 'all'), ['pending h1', 'pending h2', 'denied h2', 'approved h1'])
      t.strictSame(await waiting(store, 'new'), ['pending h1', 'pending h2'])
      t.strictSame(await waiting(store, 'all', 1), ['pending h1'])
      const [[first], [same]] = [await store.deliveries.next('all', 1), await store.deliveries.next('new', 1)]
      t.equal(first?.event, same?.event)
      t.match(first?.note, { at: 1_000, data: { agentId: 'a1', summary: '{"id":"h1"}' } })
      await store.deliveries.remove([first!])
      t.strictSame(await waiting(store, 'all', 2), ['pending h2', 'denied h2'])
      t.strictSame(await waiting(store, 'new'), ['pending h1', 'pending h2'], 'each hook has its own')
    },
  )

  t.test('a removal that comes late takes no other message with it', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    const [first] = await store.deliveries.next('new', 1)
    for (const hook of ['all', 'new']) await store.deliveries.remove(await store.deliveries.next(hook, 9))
    await suspend(store, 'h2')
    await store.deliveries.remove([first!])
    t.strictSame(await waiting(store, 'new'), ['pending h2'])
  })

  t.test('a refused write leaves nothing', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    await deny(store, 'h1')
    await deny(store, 'h1')
    t.strictSame(await waiting(store, 'all'), ['pending h1', 'denied h1'])
  })

  t.test('a hook has one owner, until its lease is over or given back', async t => {
    const store = await engine(t)
    const take = (owner: string, now: number) =>
      store.deliveries.take(['h', 'g'], lease(owner, now)).then(list => [...list].sort())
    t.strictSame(await store.deliveries.take([], lease('a', 0)), [])
    t.strictSame(await store.deliveries.take(['h'], lease('a', 0)), ['h'])
    t.strictSame(await take('b', 10), ['g'])
    t.strictSame(await take('a', 20), ['h'], 'renewed')
    t.strictSame(await take('b', 49), ['g'])
    t.strictSame(await take('b', 50), ['g', 'h'])
    await store.deliveries.leave('b')
    t.strictSame(await take('a', 51), ['g', 'h'])
  })

  t.test('messages that are too old, and the oldest of too many, are dropped and counted', async t => {
    const store = await engine(t)
    for (let n = 0; n < 5; n++) await suspend(store, `h${n}`)
    t.strictSame(await store.deliveries.prune(0, 5), [])
    t.strictSame(
      (await store.deliveries.prune(0, 3)).toSorted((a, b) => a.hook.localeCompare(b.hook)),
      [
        { hook: 'all', agentId: 'a1', count: 2, isOld: false },
        { hook: 'new', agentId: 'a1', count: 2, isOld: false },
      ],
    )
    t.strictSame(await waiting(store, 'new'), ['pending h2', 'pending h3', 'pending h4'])
    t.match(await store.deliveries.prune(Number.MAX_SAFE_INTEGER, 3), [
      { agentId: 'a1', count: 3, isOld: true },
      { agentId: 'a1', count: 3, isOld: true },
    ])
    t.strictSame(await waiting(store, 'all'), [])
  })

  t.test('of too many messages the oldest of the agents that have the most are dropped, and no others', async t => {
    const store = await engine(t)
    const hold = async (agentId: string, count: number) => {
      for (let n = 0; n < count; n++) await suspend(store, `${agentId}-${n}`, { agentId })
    }
    const ofNew = async (most: number) =>
      (await store.deliveries.prune(0, most))
        .filter(({ hook }) => hook === 'new')
        .map(({ agentId, count }) => `${agentId} ${count}`)
        .sort()
    await hold('quiet', 2)
    await hold('busy', 4)
    await hold('flood', 9)
    t.strictSame(await ofNew(9), ['busy 1', 'flood 5'])
    t.strictSame(await waiting(store, 'new'), [
      ...['pending quiet-0', 'pending quiet-1', 'pending busy-1', 'pending busy-2', 'pending busy-3'],
      ...['pending flood-5', 'pending flood-6', 'pending flood-7', 'pending flood-8'],
    ])
    t.strictSame(await ofNew(4), ['busy 2', 'flood 2', 'quiet 1'])
    t.strictSame(
      await waiting(store, 'new'),
      ['pending quiet-1', 'pending busy-3', 'pending flood-7', 'pending flood-8'],
      'what is left over after equal shares goes to the newest',
    )
    await hold('late', 1)
    t.strictSame(await ofNew(4), ['flood 1'])
  })

  t.test('messages that are dropped because they are old make room for newer ones', async t => {
    const store = await engine(t)
    for (const id of ['old1', 'old2', 'old3']) await suspend(store, id)
    for (const id of ['h1', 'h2']) await suspend(store, id, { createdAt: 2_000, expiresAt: 3_000 })
    await store.deliveries.prune(1_500, 3)
    t.strictSame(await waiting(store, 'new'), ['pending h1', 'pending h2'])
  })
}
