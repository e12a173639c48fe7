import { randomBytes } from 'node:crypto'
import t from 'tap'
import { amountShape, createSharedAmount, createTableMemory, SharedTable } from '../../src/limits/shared-table.ts'
import { createTable } from '../fixtures/table.ts'

/** What two threads count together. */
function open() {
  const shape = amountShape(2)
  const memory = createTableMemory(shape, randomBytes(8))
  const [here, there] = [0, 1].map(thread => createSharedAmount(new SharedTable(memory, shape, thread), thread))
  if (here === undefined || there === undefined) throw new Error('cannot happen: there are two')
  return { here, there }
}

t.test('a limit is exact over threads, and another key has its own', async t => {
  const { here, there } = open()
  t.strictSame([here.take('a', 3, 5), there.take('a', 3, 5), there.take('a', 2, 5)], [true, false, true])
  t.ok(here.take('b', 5, 5))
  here.give('a', 3)
  t.strictSame([there.take('a', 3, 5), here.take('a', 1, 5)], [true, false])
})

t.test('a refused amount changes nothing', async t => {
  const { here } = open()
  t.notOk(here.take('a', 6, 5))
  t.ok(here.take('a', 5, 5))
})

t.test('what a dead thread took is free again, and nothing else', async t => {
  const { here, there } = open()
  there.take('a', 4, 5)
  here.take('a', 1, 5)
  here.forget(1)
  t.strictSame([here.take('a', 4, 5), here.take('a', 1, 5)], [true, false])
})

t.test(
  'the place of a key that holds nothing goes to another; when all are in use, a new key gets nothing',
  async t => {
    const shape = { slots: 32, fields: 1 }
    const amounts = createSharedAmount(createTable(shape), 0)
    const keys = Array.from({ length: 33 }, (_, i) => `agent-${i}`)
    const [last = '', ...others] = keys
    for (const key of others) t.ok(amounts.take(key, 1, 9), key)
    t.notOk(amounts.take(last, 1, 9))
    amounts.give('agent-7', 1)
    t.ok(amounts.take(last, 1, 9))
  },
)
