import t from 'tap'
import { createHitTally } from '../../src/limits/hit-tally.ts'

t.test('decisions are counted by rule, the default of a policy too', async t => {
  const hits = createHitTally()
  hits.note('p', null)
  hits.note('p', 'a')
  hits.hear({ policy: 'p', rule: 'a', count: 3 })
  hits.note('q', 'a')
  t.strictSame(hits.of('p'), [
    { policy: 'p', rule: 'a', count: 4 },
    { policy: 'p', rule: null, count: 1 },
  ])
  t.strictSame(hits.of('q'), [{ policy: 'q', rule: 'a', count: 1 }])
  t.strictSame(hits.of('__proto__'), [])
})

t.test('others are told of each count once, and of none that they told', async t => {
  const hits = createHitTally()
  hits.note('p', 'a')
  hits.note('p', 'a')
  hits.hear({ policy: 'p', rule: 'b', count: 5 })
  t.strictSame(hits.untold(), [{ policy: 'p', rule: 'a', count: 2 }])
  t.strictSame(hits.untold(), [])
  hits.note('p', 'b')
  t.strictSame(hits.untold(), [{ policy: 'p', rule: 'b', count: 1 }])
  t.strictSame(hits.of('p'), [
    { policy: 'p', rule: 'b', count: 6 },
    { policy: 'p', rule: 'a', count: 2 },
  ])
})

t.test('names that change do not fill memory', async t => {
  const hits = createHitTally(2)
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
