import type { Test } from 'tap'
import { actions, type Engine, entry } from './samples.ts'

export function policies(t: Test, engine: Engine): void {
  t.test('a policy is stored, replaced and removed, with an audit entry each', async t => {
    const store = await engine(t)
    const first = { name: 'p', document: '{"rules":[]}', createdAt: 1, updatedAt: 1 }
    t.equal(await store.policies.insert(first, entry('policy.create')), 'stored')
    t.strictSame(await store.policies.all(), [first])
    const second = { name: 'p', document: '{}', createdAt: 9, updatedAt: 2 }
    t.equal(await store.policies.update(second, entry('policy.update')), 'stored')
    t.strictSame(await store.policies.all(), [{ ...second, createdAt: 1 }], 'the time of creation stays')
    t.equal(await store.policies.remove('p', entry('policy.delete')), 'removed')
    t.strictSame(await store.policies.all(), [])
    t.strictSame(await actions(store), ['policy.create', 'policy.update', 'policy.delete'])
  })

  t.test('what does not fit the stored policies changes nothing and records nothing', async t => {
    const store = await engine(t)
    const policy = { name: 'p', document: '{}', createdAt: 1, updatedAt: 1 }
    await store.policies.insert(policy, entry('policy.create'))
    t.equal(await store.policies.insert({ ...policy, document: 'other' }, entry('policy.create')), 'exists')
    t.equal(await store.policies.update({ ...policy, name: 'q' }, entry('policy.update')), 'notFound')
    t.equal(await store.policies.update({ ...policy, document: 'other' }, entry('policy.update'), '{ }'), 'stale')
    t.equal(await store.policies.remove('q', entry('policy.delete')), 'notFound')
    t.equal(await store.policies.remove('p', entry('policy.delete'), '{ }'), 'stale')
    t.strictSame(await store.policies.all(), [policy])
    t.strictSame(await actions(store), ['policy.create'])
  })

  t.test('several changes are made together, with an audit entry for each that changes something', async t => {
    const store = await engine(t)
    const policy = (name: string, updatedAt: number) => ({
      name,
      document: `{"at":${updatedAt}}`,
      createdAt: 1,
      updatedAt,
    })
    await store.policies.insert(policy('kept', 1), entry('policy.create'))
    await store.policies.insert(policy('gone', 1), entry('policy.create'))
    const told: [string, unknown][] = []
    await store.feed.policies.follow({ load: () => undefined, change: (key, now) => void told.push([key, now]) })
    const put = { ...policy('kept', 2), createdAt: 9 }
    await store.policies.apply([
      { name: 'new', policy: policy('new', 2), entry: entry('policy.create') },
      { name: 'kept', policy: put, entry: entry('policy.replace') },
      { name: 'gone', policy: undefined, entry: entry('policy.remove') },
      { name: 'never', policy: undefined, entry: entry('policy.remove') },
    ])
    const after = [{ ...put, createdAt: 1 }, policy('new', 2)]
    t.strictSame(await store.policies.all(), after)
    t.strictSame(
      new Map(told),
      new Map<string, unknown>([
        ['gone', undefined],
        ['kept', after[0]],
        ['new', after[1]],
      ]),
    )
    t.strictSame((await actions(store)).slice(2).sort(), ['policy.create', 'policy.remove', 'policy.replace'])
  })
}
