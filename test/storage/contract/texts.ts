import type { Test } from 'tap'
import { agent, approve, deny, type Engine, entry, get, suspend, trail } from './samples.ts'

const odd = 'a\u0000b \ud800 \u{1f600}'
const kept = 'a\ufffdb \ufffd \u{1f600}'

export function texts(t: Test, engine: Engine): void {
  t.test('U+0000 and lone surrogates are replaced in every text, and disturb nothing', async t => {
    const store = await engine(t)
    const odder = agent('a1', { name: odd, ownerId: odd, externalSubject: odd, tags: { tag: odd } })
    t.equal(await store.agents.insert(odder, 'h', entry('agent.register', { details: { name: odd } })), 'stored')
    t.match(await store.agents.all(), [{ name: kept, ownerId: kept, externalSubject: kept, tags: { tag: odd } }])
    t.match(await store.agents.update('a1', { policyName: odd }, entry('agent.policy')), { policyName: kept })
    await store.policies.insert({ name: 'p', document: odd, createdAt: 1, updatedAt: 1 }, entry('policy.create'))
    t.match(await store.policies.all(), [{ document: kept }])
    await suspend(store, 'h1', { reason: odd, url: odd, headers: { field: odd }, rule: odd, idempotencyKey: odd })
    t.match(await get(store, 'h1'), { reason: kept, url: kept, headers: { field: odd }, rule: kept })
    t.match(await suspend(store, 'h2', { idempotencyKey: odd }), { existing: { id: 'h1' } })
    t.match(await approve(store, 'h1', { comment: odd }), { claimed: { comment: kept } })
    await suspend(store, 'h3')
    t.match(await deny(store, 'h3', odd), { denied: { decidedBy: kept } })
    t.match((await trail(store)).at(-1), { actor: kept })
    t.equal((await trail(store))[0]?.details['name'], odd, 'details are JSON, which escapes them')
  })
}
