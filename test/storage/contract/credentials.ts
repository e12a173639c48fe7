/** Tokens of credentials: one gateway at a time may redeem one, and no version replaces another unseen. Threat T87. */
import type { Test } from 'tap'
import type { StoredCredential } from '../../../src/storage/credentials.ts'
import type { Store } from '../../../src/storage/store.ts'
import { eventually } from '../../fixtures/gateway.ts'
import { type Engine, entry, trail } from './samples.ts'

const row = (version: number, over: Partial<StoredCredential> = {}): StoredCredential => ({
  ...{ name: 'shop', version, state: 'ready', rotates: 0, sealed: new Uint8Array([version, 0, 255]) },
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
    t.equal(await store.credentials.of('shop'), undefined)
    const notes = { entry: entry('credential.connected', { subject: 'shop' }) }
    t.equal(await store.credentials.put(row(1), notes), true)
    t.equal(await store.credentials.put(row(1, { rotates: 1 }), notes), false, 'somebody else was first')
    t.equal(await store.credentials.put(row(3), notes), false)
    const next = row(2, { state: 'needed', rotates: 1 })
    t.equal(await store.credentials.put(next, {}), true)
    const { sealed, ...found } = (await store.credentials.of('shop'))!
    t.strictSame(found, { name: 'shop', version: 2, state: 'needed', rotates: 1 })
    t.strictSame([...sealed], [2, 0, 255])
    t.strictSame(await store.credentials.all(), [{ name: 'shop', version: 2 }])
    t.equal((await trail(store)).filter(({ action }) => action === 'credential.connected').length, 1)
    t.strictSame(seen, [[], { name: 'shop', version: 1 }, { name: 'shop', version: 2 }])
  })

  t.test('one gateway has the lease of a version, until its end or the next version', async t => {
    const store = await engine(t)
    await store.credentials.put(row(1), {})
    const lease = (version: number, now: number) => ({ name: 'shop', version, now, until: now + 30 })
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
