/** Decisions of rules add up, of all gateways, and go after their time. */
import type { Test } from 'tap'
import type { Store } from '../../../src/storage/store.ts'
import type { Engine } from './samples.ts'

export function hits(t: Test, engine: Engine, other: Store): void {
  t.test('decisions of rules add up by rule, version and day, also those of another gateway', async t => {
    const store = await engine(t)
    const one = { policy: 'p', rule: 'r', version: 'v1', day: 10, count: 2 }
    await store.hits.add([one, { ...one, day: 11 }, { ...one, policy: 'q' }])
    await Promise.all([other.hits.add([{ ...one, count: 5 }]), store.hits.add([one, { ...one, version: 'v2' }])])
    const of = async (policy: string) => {
      const found = await store.hits.of(policy)
      return found.map(({ rule, version, day, count }) => [rule, version, day, count].join(' ')).sort()
    }
    t.strictSame(await of('p'), ['r v1 10 9', 'r v1 11 2', 'r v2 10 2'])
    await store.hits.prune(11, 100)
    t.strictSame(await of('p'), ['r v1 11 2'])
    t.strictSame(await of('q'), [])
    const many = Array.from({ length: 1_200 }, (_, at) => ({ ...one, rule: `r${at}`, day: 12 }))
    await store.hits.add(many)
    t.equal((await of('p')).length, 1_201)
  })
}
