import t from 'tap'
import { Memo } from '../../src/base/memo.ts'

t.test('a memo keeps what it was given, up to its bound, and then starts again', async t => {
  const memo = new Memo<string, number | undefined>(2)
  memo.set('a', 1).set('b', undefined).set('a', 3)
  t.strictSame(
    [...memo],
    [
      ['a', 3],
      ['b', undefined],
    ],
  )
  memo.set('c', 4)
  t.strictSame([...memo], [['c', 4]])
})
