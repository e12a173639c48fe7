import fc from 'fast-check'
import t from 'tap'
import { DirectMappedCache, Memo } from '../../src/base/memo.ts'
import { runs } from '../fixtures/runs.ts'

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

const texts = fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('', 'a', 'aXa', 'aYa', 'abcd', 'acbd'))

t.test('a table gives what was set for exactly that text, or nothing', async t => {
  fc.assert(
    fc.property(fc.array(fc.tuple(texts, texts)), pairs => {
      const near = new DirectMappedCache<number>(4)
      const all = new Map<string, number>()
      pairs.forEach(([set, got], index) => {
        near.set(set, index)
        all.set(set, index)
        const found = near.get(got)
        if (found !== undefined && found !== all.get(got)) throw new Error(`${got} gave ${found}`)
        if (near.get(set) !== index) throw new Error(`${set} was not found`)
      })
    }),
    { numRuns: runs(1_000) },
  )
  t.pass('holds')
})

t.test('of texts that share a place the last one stays', async t => {
  const near = new DirectMappedCache<string>(1)
  near.set('first', '1')
  near.set('second', '2')
  t.equal(near.get('first'), undefined)
  t.equal(near.get('second'), '2')
})
