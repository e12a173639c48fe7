import fc from 'fast-check'
import t from 'tap'
import { DirectMappedCache } from '../../src/base/direct-mapped-cache.ts'
import { runs } from '../fixtures/runs.ts'

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
