/** Accounts of chats belong to one person at most. Threat T79. */
import type { Test } from 'tap'
import type { ChatIdentity } from '../../../src/storage/identities.ts'
import type { Store } from '../../../src/storage/store.ts'
import { agent, type Engine, entry, trail } from './samples.ts'

const account = (user: string): ChatIdentity => ({ provider: 'slack', team: 'T1', user })
const [one, two, three] = [account('U1'), account('U2'), account('U3')]
const set = entry('agent.identities')

export function identities(t: Test, engine: Engine, other: Store): void {
  const open = async (t: Test): Promise<Store> => {
    const store = await engine(t)
    for (const id of ['a1', 'a2']) await store.agents.insert(agent(id), 'hash', entry('agent.register'))
    return store
  }

  t.test('accounts of an agent are replaced together, with an entry that has those before and after', async t => {
    const store = await open(t)
    t.equal(await store.identities.set('a1', [two, one], set), 'stored')
    t.strictSame(await store.identities.of('a1'), [one, two])
    t.equal(await store.identities.holder(two), 'a1')
    t.equal(await store.identities.set('a1', [three], set), 'stored')
    t.equal(await store.identities.holder(two), undefined)
    t.match((await trail(store)).at(-1), { details: { before: [one, two], after: [three] } })
  })

  t.test('an account belongs to one agent, and a refused change changes and records nothing', async t => {
    const store = await open(t)
    await store.identities.set('a1', [one], set)
    t.equal(await store.identities.set('a2', [two, one], set), 'taken')
    t.equal(await store.identities.add('a2', one, 5, set), 'taken')
    t.equal(await store.identities.set('none', [two], set), 'notFound')
    t.equal(await store.identities.add('none', two, 5, set), 'notFound')
    t.strictSame(await store.identities.of('a2'), [])
    t.equal((await trail(store)).filter(({ action }) => action === 'agent.identities').length, 1)
    await store.identities.set('a1', [], set)
    t.equal(await store.identities.set('a2', [one], set), 'stored')
  })

  t.test('of several that add an account at the same time one gets it, and nobody gets more than the most', async t => {
    const store = await open(t)
    const both = [store.identities.add('a1', one, 2, set), other.identities.add('a2', one, 2, set)]
    t.strictSame((await Promise.all(both)).sort(), ['stored', 'taken'])
    const holder = (await store.identities.holder(one)) ?? ''
    t.equal(await store.identities.add(holder, one, 1, set), 'stored')
    t.equal(await store.identities.add(holder, two, 1, set), 'full')
  })

  t.test('accounts end with their agent', async t => {
    const store = await open(t)
    await store.identities.set('a1', [one], set)
    await store.agents.remove('a1', entry('agent.remove'))
    t.equal(await store.identities.holder(one), undefined)
    t.strictSame(await store.identities.of('a1'), [])
  })
}
