import t from 'tap'
import { type Store, StoreError } from '../../src/storage/store.ts'
import { timedStore } from '../../src/storage/timed-store.ts'
import { createClock } from '../fixtures/clock.ts'

function open(fault?: Error) {
  const clock = createClock()
  const notes: unknown[] = []
  const take = async (value: unknown) => {
    clock.advance(7)
    if (fault !== undefined) throw fault
    return value
  }
  const table = { all: () => take('read'), insert: (record: unknown) => take(record) }
  const tables = { agents: table, policies: table, hitl: table, grants: table, tools: {}, codes: {}, tokens: table }
  // Only what this test calls.
  const store = {
    ...tables,
    deliveries: {},
    audit: {},
    ping: () => take(undefined),
    feed: 'feed',
    close: async () => {},
  }
  const times = {
    ended: (kind: string, ms: number) => void notes.push([kind, ms]),
    failed: (kind: string) => void notes.push(kind),
  }
  return { store: timedStore(store as unknown as Store, clock, times), notes }
}

t.test('operations are timed as reads and writes, and keep arguments and results', async t => {
  const { store, notes } = open()
  t.equal(await store.agents.all(), 'read')
  t.equal(await store.policies.insert('record' as never, {} as never), 'record')
  await store.ping()
  t.strictSame(notes, [
    ['read', 7],
    ['write', 7],
    ['write', 7],
  ])
})

t.test('a failure is told by its kind, and reaches the caller', async t => {
  for (const [fault, kind] of [
    [new StoreError('down'), 'unavailable'],
    [new StoreError('who knows', { inDoubt: true }), 'in_doubt'],
    [new TypeError('a mistake'), 'fault'],
  ] as const) {
    const { store, notes } = open(fault)
    await t.rejects(store.agents.all(), fault)
    t.strictSame(notes, [['read', 7], kind])
  }
})
