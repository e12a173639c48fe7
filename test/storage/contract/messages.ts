import type { Test } from 'tap'
import type { Store } from '../../../src/storage/store.ts'
import { type Engine, entry, suspend } from './samples.ts'

const message = (reference: string, hitlId: string, state = 'Pending ') => ({
  ...{ channel: 'C1', reference, hitlId, state, shown: `shown ${reference}` },
})

export function messages(t: Test, engine: Engine): void {
  const deny = (store: Store, id: string) =>
    store.hitl.deny(id, { reviewer: 'r1', comment: null, now: 1_500 }, entry('hitl.deny'))

  t.test('a message is stale when its request has changed, until the new state is noted', async t => {
    const store = await engine(t)
    for (const id of ['h1', 'h2']) await suspend(store, id)
    await store.messages.keep(message('1', 'h1'))
    await store.messages.keep(message('2', 'h1'))
    await store.messages.keep(message('3', 'h2'))
    await store.messages.keep({ ...message('4', 'h1'), channel: 'C2' })
    t.strictSame(await store.messages.stale('C1', 10), [])
    await deny(store, 'h1')
    const shown = { hitlId: 'h1', status: 'Denied', replay: null, decidedBy: 'r1', digest: 'digest h1' }
    t.match(await store.messages.stale('C1', 10), [
      { ...shown, reference: '1', shown: 'shown 1' },
      { ...shown, reference: '2' },
    ])
    t.equal((await store.messages.stale('C1', 1)).length, 1)
    await store.messages.note({ channel: 'C1', reference: '1' }, 'Denied ')
    await store.messages.note({ channel: 'C1', reference: '2' }, null)
    t.strictSame(await store.messages.stale('C1', 10), [])
    await store.messages.keep(message('2', 'h1'))
    t.match(await store.messages.stale('C1', 10), [{ reference: '2' }], 'it is noted again')
    await store.messages.keep(message('1', 'h1'))
    t.equal((await store.messages.stale('C1', 10)).length, 1, 'one that is known stays as it is')
  })

  t.test('messages end with their request', async t => {
    const store = await engine(t)
    await suspend(store, 'h1')
    await store.messages.keep(message('1', 'h1'))
    await deny(store, 'h1')
    t.equal((await store.messages.stale('C1', 10)).length, 1)
    await store.hitl.prune(9_000, 10)
    await store.messages.keep(message('1', 'h1'))
    t.strictSame(await store.messages.stale('C1', 10), [])
  })
}
