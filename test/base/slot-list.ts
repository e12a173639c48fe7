import t from 'tap'
import { SlotList } from '../../src/base/slot-list.ts'

t.test('a list of slots has what was added and not removed', async t => {
  const list = new SlotList<{ readonly name: string; slot: number }>()
  const [a, b, c] = ['a', 'b', 'c'].map(name => ({ name, slot: -1 })) as [never, never, never]
  for (const entry of [a, b, c]) list.add(entry)
  list.remove(a)
  t.strictSame(new Set(list.all()), new Set([b, c]))
  list.remove(a)
  t.equal(list.size, 2, 'it is removed once')
  list.remove(b)
  list.remove(c)
  t.strictSame(list.all(), [])
  list.add(a)
  t.strictSame(list.all(), [a])
})
