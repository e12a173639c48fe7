import t from 'tap'
import { RuleTally } from '../../src/limits/rule-tally.ts'

t.test('decisions are counted by rule, the default of a policy too', async t => {
  const hits = new RuleTally()
  hits.note('p', null)
  hits.note('p', 'a')
  hits.add({ policy: 'p', rule: 'a', would: null, count: 3 })
  hits.note('q', 'a')
  t.strictSame(hits.of('p'), [
    { policy: 'p', rule: 'a', would: null, count: 4 },
    { policy: 'p', rule: null, would: null, count: 1 },
  ])
  t.strictSame(hits.of('q'), [{ policy: 'q', rule: 'a', would: null, count: 1 }])
  t.strictSame(hits.of('__proto__'), [])
})

t.test('others get each count once, and none that they sent', async t => {
  const hits = new RuleTally()
  hits.note('p', 'a')
  hits.note('p', 'a')
  hits.add({ policy: 'p', rule: 'b', would: null, count: 5 })
  t.strictSame(hits.unsent(), [{ policy: 'p', rule: 'a', would: null, count: 2 }])
  t.strictSame(hits.unsent(), [])
  hits.note('p', 'b')
  t.strictSame(hits.unsent(), [{ policy: 'p', rule: 'b', would: null, count: 1 }])
  t.strictSame(hits.of('p'), [
    { policy: 'p', rule: 'b', would: null, count: 6 },
    { policy: 'p', rule: 'a', would: null, count: 2 },
  ])
})

t.test('what a rule would do in shadow is counted by effect', async t => {
  const shadows = new RuleTally()
  shadows.note('p', 'a b', 'Deny')
  shadows.note('p', 'a b', 'RequireApproval')
  shadows.note('p', 'a b', 'Deny')
  shadows.note('p', 'b', 'Deny')
  shadows.add({ policy: 'p', rule: 'a b', would: 'RequireApproval', count: 4 })
  t.strictSame(shadows.of('p'), [
    { policy: 'p', rule: 'a b', would: 'RequireApproval', count: 5 },
    { policy: 'p', rule: 'a b', would: 'Deny', count: 2 },
    { policy: 'p', rule: 'b', would: 'Deny', count: 1 },
  ])
  t.strictSame(
    shadows.unsent().map(({ would, count }) => [would, count]),
    [
      ['Deny', 2],
      ['RequireApproval', 1],
      ['Deny', 1],
    ],
  )
  t.end()
})

t.test('names that change do not fill memory', async t => {
  const hits = new RuleTally(2)
  for (const rule of ['a', 'b', 'c']) hits.note('p', rule)
  hits.note('r', 'x')
  hits.note('p', 'b')
  t.strictSame(
    hits.of('p').map(({ rule, count }) => [rule, count]),
    [
      ['b', 2],
      ['a', 1],
    ],
  )
  t.strictSame(hits.of('r'), [])
})
