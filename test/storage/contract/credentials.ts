/** Tokens of credentials: one gateway at a time may redeem one, and no version replaces another unseen. Threats T87, T91. */
import type { Test } from 'tap'
import { agentSubject, allSubject, ownerSubject, type StoredCredential } from '../../../src/storage/credentials.ts'
import type { AgentRecord, Store } from '../../../src/storage/store.ts'
import { eventually } from '../../fixtures/gateway.ts'
import { agent, type Engine, entry, trail } from './samples.ts'

const shop = { name: 'shop', subject: '' }

const row = (version: number, over: Partial<StoredCredential> = {}): StoredCredential => ({
  ...{ name: 'shop', subject: '', version, state: 'ready', rotates: 0, sealed: new Uint8Array([version, 0, 255]) },
  ...over,
})

/** @param isOne whether both stores are those of the same gateway */
export function credentials(t: Test, engine: Engine, { other, isOne }: { other: Store; isOne: boolean }): void {
  t.test('a row is replaced by the next version alone, and its change is on record and in the feed', async t => {
    const store = await engine(t)
    const seen: unknown[] = []
    const note = (one: unknown) => {
      seen.push(one)
      return undefined
    }
    t.teardown(await store.feed.credentials.follow({ load: all => note(all), change: (_, now) => note(now) }))
    t.equal(await store.credentials.of(shop), undefined)
    const notes = { entry: entry('credential.connected', { subject: 'shop' }) }
    t.equal(await store.credentials.put(row(1), notes), true)
    t.equal(await store.credentials.put(row(1, { rotates: 1 }), notes), false, 'somebody else was first')
    t.equal(await store.credentials.put(row(3), notes), false)
    const next = row(2, { state: 'needed', rotates: 1 })
    t.equal(await store.credentials.put(next, {}), true)
    const { sealed, ...found } = (await store.credentials.of(shop))!
    t.strictSame(found, { ...shop, version: 2, state: 'needed', rotates: 1 })
    t.strictSame([...sealed], [2, 0, 255])
    t.strictSame(await store.credentials.all(), [{ ...shop, version: 2 }])
    t.equal((await trail(store)).filter(({ action }) => action === 'credential.connected').length, 1)
    t.strictSame(seen, [[], { ...shop, version: 1 }, { ...shop, version: 2 }])
  })

  t.test('one gateway has the lease of a version, until its end or the next version', async t => {
    const store = await engine(t)
    await store.credentials.put(row(1), {})
    const lease = (version: number, now: number) => ({ ...shop, version, now, until: now + 30 })
    t.equal(await store.credentials.lease(lease(2, 0)), false)
    t.equal(await store.credentials.lease(lease(1, 0)), true)
    t.equal(await store.credentials.lease(lease(1, 10)), true, 'its own')
    t.equal(await other.credentials.lease(lease(1, 39)), isOne, 'of another gateway, when there is one')
    t.equal(await other.credentials.lease(lease(1, 40)), true, 'it has ended')
    await store.credentials.put(row(2), {})
    t.equal(await store.credentials.lease(lease(1, 40)), false)
    t.equal(await store.credentials.lease(lease(2, 40)), true)
  })

  t.test('of gateways that store the next version at the same time one succeeds', async t => {
    const store = await engine(t)
    await store.credentials.put(row(1), {})
    const both = await Promise.all([store, other, store].map(one => one.credentials.put(row(2), {})))
    t.strictSame(both.sort(), [false, false, true])
  })

  t.test('each subject has a row, a lease and a version of its own, and keys are told apart', async t => {
    const store = await engine(t)
    const keys: string[] = []
    const follower = { load: () => undefined, change: (key: string) => void keys.push(key) }
    t.teardown(await store.feed.credentials.follow(follower))
    const [anna, bob] = [row(1, { subject: ownerSubject('anna') }), row(1, { subject: ownerSubject('bob') })]
    for (const one of [row(1), anna, bob]) t.equal(await store.credentials.put(one, {}), true)
    const lease = { ...bob, now: 0, until: 30 }
    t.equal(await store.credentials.lease(lease), true)
    t.equal(await other.credentials.lease({ ...anna, now: 0, until: 30 }), true, 'another account is not leased')
    const next = { ...bob, version: 2, sealed: new Uint8Array([9]) }
    t.equal(await store.credentials.put(next, {}), true)
    t.match(await store.credentials.of(bob), { version: 2, subject: 'owner bob' })
    for (const one of [anna, row(1)]) t.match(await store.credentials.of(one), { version: 1, subject: one.subject })
    t.match(await store.credentials.list({ name: 'shop' }, 2), [{ subject: '' }, { subject: 'owner anna' }])
    t.match(await store.credentials.list({ subject: 'owner bob' }, 9), [{ name: 'shop', version: 2 }])
    t.strictSame(await store.credentials.list({ subject: allSubject }, 9), [])
    t.strictSame(keys, ['shop', 'shop owner anna', 'shop owner bob', 'shop owner bob'])
  })

  t.test('the accounts of an agent go with it, and one that is registered again has none', async t => {
    const store = await engine(t)
    const gone: string[] = []
    const follower = {
      load: () => undefined,
      change: (key: string, now: unknown) => void (now === undefined && gone.push(key)),
    }
    t.teardown(await store.feed.credentials.follow(follower))
    const [a1, a2] = [agent('a1', { createdAt: 1 }), agent('a2', { createdAt: 1 })]
    for (const one of [a1, a2]) await store.agents.insert(one, 'hash', entry('agent.register'))
    const of = (record: AgentRecord) => row(1, { subject: agentSubject(record) })
    for (const one of [a1, a2]) t.equal(await store.credentials.put(of(one), {}), true)
    await store.agents.remove('a1', entry('agent.remove'))
    t.equal(await store.credentials.of(of(a1)), undefined)
    t.match(await store.credentials.of(of(a2)), { version: 1 })
    t.strictSame(gone, [`shop ${agentSubject(a1)}`])
    t.equal(await store.credentials.put(of(a1), {}), false, 'it is not there any more')
    const again = agent('a1', { createdAt: 2 })
    await store.agents.insert(again, 'hash', entry('agent.register'))
    t.equal(await store.credentials.put(of(a1), {}), false, 'it is another one')
    t.equal(await store.credentials.put(of(again), {}), true)
  })

  t.test('a consent ends once, in time, and one person cannot push out those of others', async t => {
    const store = await engine(t)
    const limits = { max: 3, maxEach: 2, now: 0 }
    const consent = (hash: string, agentId: string, expiresAt = 10) => ({
      ...{ hash, agentId, expiresAt, sealed: new Uint8Array([1, 255]) },
    })
    for (const one of [consent('a', 'anna'), consent('b', 'bob', 11), consent('c', 'bob', 12), consent('d', 'bob', 13)])
      await store.credentials.keepConsent(one, limits)
    t.equal(await store.credentials.takeConsent('b', 1), undefined, 'the oldest of too many')
    t.equal(await store.credentials.takeConsent('a', 10), undefined, 'it is over')
    const taken = await Promise.all([store, other, store].map(one => one.credentials.takeConsent('c', 1)))
    const [found, ...more] = taken.filter(one => one !== undefined)
    t.match({ ...found, sealed: [...found!.sealed] }, { agentId: 'bob', sealed: [1, 255] })
    t.strictSame(more, [])
  })

  t.test('what happened to a credential without a row is on record, and people are told', async t => {
    const store = await engine(t)
    const event = { type: 'credentialNeeded', at: 1, hitlId: null, data: { agentId: '', credential: 'x' } } as const
    const types: string[] = []
    const follower = {
      load: () => undefined,
      change: (_: string, now?: { type: string }) => void types.push(now!.type),
    }
    t.teardown(await store.feed.events.follow(follower))
    await store.credentials.note({ entry: entry('credential.failed'), event })
    t.equal((await trail(store)).at(-1)?.action, 'credential.failed')
    await eventually(
      () => types.length,
      length => length > 0,
    )
    t.strictSame(types, ['credentialNeeded'])
  })
}
