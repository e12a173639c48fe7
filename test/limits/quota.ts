import { randomBytes } from 'node:crypto'
import t from 'tap'
import { createQuota } from '../../src/limits/quota.ts'
import { amountShape, createSharedAmount, createTableMemory, SharedTable } from '../../src/limits/shared-table.ts'
import { createTable } from '../fixtures/table.ts'

const shape = amountShape(2)

/** What two threads count together. */
function open(limits: { all: number; each: number }) {
  const memory = createTableMemory(shape, randomBytes(8))
  const amounts = [0, 1].map(thread => createSharedAmount(new SharedTable(memory, shape, thread), thread))
  return {
    counts: amounts.map(open => createQuota(limits, { all: 'connections', each: 'address_connections' }, open)),
    forget: amounts[0]?.forget,
  }
}

t.test('a peer has so many connections over all threads, and another one its own', async t => {
  const { counts } = open({ all: 100, each: 3 })
  const [here, there] = counts as [(typeof counts)[0], (typeof counts)[0]]
  t.strictSame(
    [here.take('a', 1), there.take('a', 1), here.take('a', 1), there.take('a', 1)],
    [undefined, undefined, undefined, 'address_connections'],
  )
  t.equal(there.take('b', 1), undefined)
  here.give('a', 1)
  t.strictSame([there.take('a', 1), here.take('a', 1)], [undefined, 'address_connections'])
})

t.test('all peers together have so many; those that cannot be distinguished count in the total alone', async t => {
  const { counts } = open({ all: 3, each: 1 })
  const [here, there] = counts as [(typeof counts)[0], (typeof counts)[0]]
  t.strictSame(
    [here.take(undefined, 1), there.take(undefined, 1), here.take('a', 1)],
    [undefined, undefined, undefined],
  )
  t.strictSame([here.take('b', 1), there.take(undefined, 1)], ['connections', 'connections'])
  there.give(undefined, 1)
  t.equal(here.take('b', 1), undefined)
})

t.test('without a limit of a peer only the total counts', async t => {
  const { counts } = open({ all: 10, each: 0 })
  t.notOk(Array.from({ length: 10 }, () => counts[0]?.take('a', 1)).some(Boolean))
  t.equal(counts[0]?.take('a', 1), 'connections')
})

t.test('the connections of a thread that died are gone, and no others', async t => {
  const { counts, forget } = open({ all: 10, each: 2 })
  const [here, there] = counts as [(typeof counts)[0], (typeof counts)[0]]
  for (const peer of ['a', 'b', undefined]) there.take(peer, 1)
  here.take('a', 1)
  forget?.(1)
  t.strictSame([here.take('a', 1), here.take('a', 1)], [undefined, 'address_connections'])
  for (const peer of ['a', 'a']) here.give(peer, 1)
  t.notOk(Array.from({ length: 10 }, (_, i) => there.take(`p${i}`, 1)).some(Boolean), 'nothing is left behind')
})

t.test('an agent has its part, all together have the whole, and what was refused counts for nothing', async t => {
  const held = createQuota(
    { all: 100, each: 40 },
    { all: 'held_bytes', each: 'agent_held_bytes' },
    createSharedAmount(createTable(amountShape(1)), 0),
  )
  t.equal(held.take('a', 40), undefined)
  t.equal(held.take('a', 1), 'agent_held_bytes')
  t.equal(held.take('b', 40), undefined)
  t.equal(held.take('c', 30), 'held_bytes')
  t.equal(held.take('c', 20), undefined)
  held.give('a', 40)
  t.equal(held.take('a', 40), undefined)
  t.equal(held.take('c', 1), 'held_bytes')
})
