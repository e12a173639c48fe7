import { randomBytes } from 'node:crypto'
import { createConnectionCount } from '../../src/limits/connection-count.ts'
import { amountShape, createSharedAmount } from '../../src/limits/shared-amount.ts'
import { createTableMemory, SharedTable } from '../../src/limits/shared-table.ts'
import t from '../fixtures/tap.ts'

const shape = amountShape(2)

/** What two threads count together. */
function open(limits: { all: number; perPeer: number }) {
  const memory = createTableMemory(shape, randomBytes(8))
  const amounts = [0, 1].map(thread => createSharedAmount(new SharedTable(memory, shape, thread), thread))
  return { counts: amounts.map(open => createConnectionCount(limits, open)), forget: amounts[0]?.forget }
}

t.test('a peer has so many connections over all threads, and another one its own', async t => {
  const { counts } = open({ all: 100, perPeer: 3 })
  const [here, there] = counts as [(typeof counts)[0], (typeof counts)[0]]
  t.strictSame(
    [here.enter('a'), there.enter('a'), here.enter('a'), there.enter('a')],
    [undefined, undefined, undefined, 'address_connections'],
  )
  t.equal(there.enter('b'), undefined)
  here.leave('a')
  t.strictSame([there.enter('a'), here.enter('a')], [undefined, 'address_connections'])
})

t.test('all peers together have so many; those that are not told apart count in the total alone', async t => {
  const { counts } = open({ all: 3, perPeer: 1 })
  const [here, there] = counts as [(typeof counts)[0], (typeof counts)[0]]
  t.strictSame([here.enter(undefined), there.enter(undefined), here.enter('a')], [undefined, undefined, undefined])
  t.strictSame([here.enter('b'), there.enter(undefined)], ['connections', 'connections'])
  there.leave(undefined)
  t.equal(here.enter('b'), undefined)
})

t.test('without a limit of a peer only the total counts', async t => {
  const { counts } = open({ all: 10, perPeer: 0 })
  t.notOk(Array.from({ length: 10 }, () => counts[0]?.enter('a')).some(Boolean))
  t.equal(counts[0]?.enter('a'), 'connections')
})

t.test('the connections of a thread that died are gone, and no others', async t => {
  const { counts, forget } = open({ all: 10, perPeer: 2 })
  const [here, there] = counts as [(typeof counts)[0], (typeof counts)[0]]
  for (const peer of ['a', 'b', undefined]) there.enter(peer)
  here.enter('a')
  forget?.(1)
  t.strictSame([here.enter('a'), here.enter('a')], [undefined, 'address_connections'])
  for (const peer of ['a', 'a']) here.leave(peer)
  t.notOk(Array.from({ length: 10 }, (_, i) => there.enter(`p${i}`)).some(Boolean), 'nothing is left behind')
})
