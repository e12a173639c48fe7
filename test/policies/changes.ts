/** What a reload tells of the policies that it changed. */
import t from 'tap'
import { changesBetween, describeChanges } from '../../src/policies/changes.ts'

const entry = (name: string, version: string, rules: number, source: 'file' | 'api' = 'file') =>
  ({ source, document: { name, rules: Array.from({ length: rules }) }, compiled: { version } }) as never // All that is read.

t.test('policies are added, changed and removed by their names; those of the API do not count', async t => {
  const before = [entry('same', '1', 1), entry('cut', '1', 3), entry('gone', '1', 1), entry('api', '1', 2, 'api')]
  const after = [entry('same', '1', 1), entry('cut', '2', 1), entry('new', '1', 1), entry('api', '2', 1, 'api')]
  const found = changesBetween(before, after)
  t.strictSame(found, {
    ...{ count: 3, added: ['new'], changed: ['cut'], removed: ['gone'] },
    shrunk: ['policy cut has fewer rules than before: 3, now 1'],
  })
  t.equal(describeChanges(found), 'added new; changed cut; removed gone')
  t.equal(describeChanges(changesBetween(before, before)), 'nothing changed')
})

t.test('a line of the log names twenty policies at most', async t => {
  const many = Array.from({ length: 23 }, (_, n) => entry(`p${n}`, '1', 1))
  t.match(describeChanges(changesBetween([], many)), /^added p0, .*, p19 and 3 more$/)
})
