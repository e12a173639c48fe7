import t from 'tap'
import { Differences } from '../../src/fleet/differences.ts'
import type { MemberView } from '../../src/fleet/view.ts'

const member = (id: string, ...differs: string[]): MemberView => ({
  ...{ id, name: id, version: '1', addresses: [], startedAt: 0, lastSeenAt: 0, state: 'Serving', lag: 0 },
  ...{ differs, isThis: false },
})

t.test('a difference is logged when it has lasted for more than 5 minutes, and only once', async t => {
  const differences = new Differences()
  t.strictSame(differences.look([member('a', 'policy files')], 0), [])
  t.strictSame(differences.look([member('a', 'policy files')], 300_000), [])
  t.equal(differences.count, 0)
  t.match(differences.look([member('a', 'policy files')], 300_001), [{ name: 'a', what: 'policy files' }])
  t.strictSame(differences.look([member('a', 'policy files')], 400_000), [])
  t.equal(differences.count, 1)
  differences.look([member('a')], 400_001)
  t.equal(differences.count, 0)
})

t.test('a difference that ends meanwhile begins from the start', async t => {
  const differences = new Differences()
  differences.look([member('a', 'x')], 0)
  differences.look([member('a')], 100_000)
  differences.look([member('a', 'x')], 200_000)
  t.strictSame(differences.look([member('a', 'x')], 400_000), [])
  t.equal(differences.look([member('a', 'x')], 500_001).length, 1)
})
