import t from 'tap'
import { preferenceApplied, preferredWait } from '../../src/http/prefer.ts'

t.test('the seconds to wait are read as RFC 7240 writes them, 55 at most', async t => {
  const cases: [string[], number][] = [
    [[], 0],
    [['wait=10'], 10],
    [['respond-async, wait=10'], 10],
    [['Wait = "20" ; x=1, handling=lenient'], 20],
    [['wait=10, wait=20'], 10],
    [['return=minimal', 'wait=30'], 30],
    [['wait=600'], 55],
    [['wait=0'], 0],
    [['wait'], 0],
    [['wait=-1'], 0],
    [['wait=1.5'], 0],
    [['wait=9999999'], 0],
    [['xwait=10'], 0],
    [['other; wait=10'], 0],
  ]
  for (const [values, seconds] of cases) {
    const raw = ['Host', 'a', ...values.flatMap(value => ['Prefer', value])]
    t.equal(preferredWait(raw), seconds, values.join(' | '))
  }
})

t.test('only a preference that was followed is named', async t => {
  t.strictSame(preferenceApplied(0), [])
  t.strictSame(preferenceApplied(10), ['Preference-Applied', 'wait=10'])
})
