/** Browsers that get pushes, and the key that signs them. Threat T86. */
import type { Test } from 'tap'
import type { Store } from '../../../src/storage/store.ts'
import type { PushSubscription } from '../../../src/storage/subscriptions.ts'
import { agent, type Engine, entry, trail } from './samples.ts'

const browser = (id: string, over: Partial<PushSubscription> = {}): PushSubscription => ({
  ...{ id, agentId: 'a1', endpoint: `https://push.example/${id}`, p256dh: 'key', auth: 'secret', createdAt: 1 },
  ...over,
})
const on = entry('push.subscribe')
const bytes = (text: string): Uint8Array => Buffer.from(text)
const text = (found: Uint8Array): string => Buffer.from(found).toString()

export function subscriptions(t: Test, engine: Engine, other: Store): void {
  const open = async (t: Test): Promise<Store> => {
    const store = await engine(t)
    for (const id of ['a1', 'a2']) await store.agents.insert(agent(id), 'hash', entry('agent.register'))
    return store
  }
  const ids = async (store: Store) => (await store.subscriptions.all()).map(({ id }) => id)

  t.test('gateways that make the key at the same time get one', async t => {
    const { subscriptions } = await open(t)
    const both = [subscriptions.key(bytes('one')), other.subscriptions.key(bytes('two'))]
    const [first, second] = (await Promise.all(both)).map(text)
    t.equal(first, second)
    t.equal(text(await subscriptions.key(bytes('three'))), first)
  })

  t.test('a key that cannot be used is replaced once, and the subscriptions made with it end', async t => {
    const store = await open(t)
    const { subscriptions } = store
    await subscriptions.key(bytes('old'))
    await subscriptions.keep(browser('b1'), 5, on)
    t.equal(text(await subscriptions.key(bytes('new'), bytes('old'))), 'new')
    t.strictSame(await ids(store), [])
    t.equal(text(await other.subscriptions.key(bytes('late'), bytes('old'))), 'new')
  })

  t.test('the oldest browsers of a person make way, and those of others stay', async t => {
    const store = await open(t)
    const { subscriptions } = store
    await subscriptions.keep(browser('x', { agentId: 'a2' }), 2, on)
    for (const [at, id] of ['b1', 'b2', 'b3'].entries()) {
      t.equal(await subscriptions.keep(browser(id, { createdAt: at }), 2, on), 'stored')
    }
    t.strictSame(await ids(store), ['b2', 'b3', 'x'])
    t.equal(await subscriptions.keep(browser('b4', { agentId: 'none' }), 2, on), 'notFound')
    t.equal((await trail(store)).filter(({ action }) => action === 'push.subscribe').length, 4)
    await subscriptions.keep(browser('b2', { auth: 'other', createdAt: 9 }), 2, on)
    t.match(await subscriptions.all(), [browser('b2', { auth: 'other', createdAt: 9 }), { id: 'b3' }, { id: 'x' }])
  })

  t.test('a browser is removed by its person alone, and with its person', async t => {
    const store = await open(t)
    const { subscriptions } = store
    for (const id of ['b1', 'b2']) await subscriptions.keep(browser(id), 5, on)
    t.equal(await subscriptions.remove('b1', 'a2', entry('push.unsubscribe')), false)
    t.equal(await subscriptions.remove('b1', 'a1', entry('push.unsubscribe')), true)
    t.equal((await trail(store)).filter(({ action }) => action === 'push.unsubscribe').length, 1)
    await store.agents.remove('a1', entry('agent.remove'))
    t.strictSame(await ids(store), [])
  })
}
