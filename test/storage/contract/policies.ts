import type { Test } from '../../fixtures/tap.ts'
import { actions, type Engine, entry } from './samples.ts'

export function policies(t: Test, engine: Engine): void {
  t.test('a policy is stored, replaced and removed, with an audit entry each', async t => {
    const store = await engine(t)
    const first = { name: 'p', document: '{"rules":[]}', createdAt: 1, updatedAt: 1 }
    t.equal(await store.policies.insert(first, entry('policy.create')), 'stored')
    t.same(await store.policies.all(), [first])
    const second = { name: 'p', document: '{}', createdAt: 9, updatedAt: 2 }
    t.equal(await store.policies.update(second, entry('policy.update')), 'stored')
    t.same(await store.policies.all(), [{ ...second, createdAt: 1 }], 'the time of creation stays')
    t.equal(await store.policies.remove('p', entry('policy.delete')), true)
    t.same(await store.policies.all(), [])
    t.same(await actions(store), ['policy.create', 'policy.update', 'policy.delete'])
  })

  t.test('what does not fit the stored policies changes nothing and records nothing', async t => {
    const store = await engine(t)
    const policy = { name: 'p', document: '{}', createdAt: 1, updatedAt: 1 }
    await store.policies.insert(policy, entry('policy.create'))
    t.equal(await store.policies.insert({ ...policy, document: 'other' }, entry('policy.create')), 'exists')
    t.equal(await store.policies.update({ ...policy, name: 'q' }, entry('policy.update')), 'notFound')
    t.equal(await store.policies.remove('q', entry('policy.delete')), false)
    t.same(await store.policies.all(), [policy])
    t.same(await actions(store), ['policy.create'])
  })
}
