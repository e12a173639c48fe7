import { createHeldBytes } from '../../src/limits/held-bytes.ts'
import { amountShape, createSharedAmount } from '../../src/limits/shared-amount.ts'
import { createTable } from '../fixtures/table.ts'
import t from '../fixtures/tap.ts'

t.test('an agent has its part, all together have the whole, and what was refused counts for nothing', async t => {
  const held = createHeldBytes({ all: 100, each: 40 }, createSharedAmount(createTable(amountShape(1)), 0))
  t.equal(held.take('a', 40), undefined)
  t.equal(held.take('a', 1), 'agent_held_bytes')
  t.equal(held.take('b', 40), undefined)
  t.equal(held.take('c', 30), 'held_bytes')
  t.equal(held.take('c', 20), undefined)
  held.give('a', 40)
  t.equal(held.take('a', 40), undefined)
  t.equal(held.take('c', 1), 'held_bytes')
})
