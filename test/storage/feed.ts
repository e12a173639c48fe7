import type { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import type { FeedFollower } from '../../src/storage/feed.ts'
import type { AgentRecord, Store } from '../../src/storage/store.ts'
import { eventually } from '../fixtures/gateway.ts'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'
import { agent, entry } from './contract/samples.ts'

async function open(t: Test): Promise<Store> {
  const store = await openSqliteStore({ directory: testdir(t) })
  t.teardown(() => store.close())
  return store
}

/** What a follower was told. */
function recorder(inForce?: Promise<void>) {
  const told: [string, string | undefined][] = []
  const follower: FeedFollower<AgentRecord> = {
    load(all) {
      told.push(['load', all.map(({ id }) => id).join()])
      return undefined
    },
    change(key, now) {
      told.push([key, now?.status])
      return inForce
    },
  }
  return { told, follower }
}

t.test('a write resolves when every follower has the change in force', async t => {
  const store = await open(t)
  const released = Promise.withResolvers<void>()
  const slow = recorder(released.promise)
  const quick = recorder()
  await store.feed.agents.follow(slow.follower)
  await store.feed.agents.follow(quick.follower)
  let answered = false
  const write = store.agents.insert(agent('a1'), 'h', entry('agent.register')).then(() => {
    answered = true
  })
  await eventually(
    async () => quick.told.length,
    count => count === 2,
  )
  await store.audit.append(entry('another write is answered meanwhile'))
  t.equal(answered, false)
  released.resolve()
  await write
  t.strictSame(slow.told, [
    ['load', ''],
    ['a1', 'Active'],
  ])
})

t.test('changes come in the order of the commits, none of a write that failed, and loads in their place', async t => {
  const store = await open(t)
  await store.agents.insert(agent('a1'), 'h', entry('agent.register'))
  const first = recorder()
  await store.feed.agents.follow(first.follower)
  const update = (status: AgentRecord['status'], details = {}) =>
    store.agents.update('a1', { status }, entry('agent.change', { details }))
  const late = recorder()
  await Promise.allSettled([
    update('Inactive'),
    update('Revoked', { unrecordable: 1n }),
    store.feed.agents.follow(late.follower),
    update('Quarantined'),
    store.agents.insert(agent('a1'), 'h', entry('agent.register')),
    store.agents.update('a1', { status: 'Active' }, entry('agent.change'), ['Inactive']),
    store.agents.remove('a1', entry('agent.remove')),
  ])
  t.strictSame(first.told, [
    ['load', 'a1'],
    ['a1', 'Inactive'],
    ['a1', 'Quarantined'],
    ['a1', undefined],
  ])
  // Reads of a round come after its writes: the load shows them, and nothing is told twice or missed.
  t.equal(late.told[0]?.[0], 'load')
  const shown = late.told.slice(1)
  t.strictSame(shown, first.told.slice(first.told.length - shown.length))
})

t.test('one that no longer follows gets nothing', async t => {
  const store = await open(t)
  const { told, follower } = recorder()
  const end = await store.feed.agents.follow(follower)
  end()
  await store.agents.insert(agent('a1'), 'h', entry('agent.register'))
  t.strictSame(told, [['load', '']])
})

t.test('after a thread died with a write under way everything is loaded again', async t => {
  const threads: Worker[] = []
  const remember = (worker: Worker) => threads.push(worker)
  process.on('worker', remember)
  t.teardown(() => process.off('worker', remember))
  const store = await open(t)
  const { told, follower } = recorder()
  await store.feed.agents.follow(follower)
  const lost = store.agents.insert(agent('a1'), 'h', entry('agent.register'))
  void threads[0]?.terminate()
  await t.rejects(lost, { name: 'StoreError', inDoubt: true })
  await eventually(
    async () => told.filter(([what]) => what === 'load').length,
    count => count === 2,
  )
  t.strictSame(told.at(-1), ['load', (await store.agents.all()).map(({ id }) => id).join()])
})
