import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { openSqliteStore } from '../../src/storage/sqlite/open.ts'
import { eventually } from '../fixtures/gateway.ts'
import { testdir } from '../fixtures/testdir.ts'
import { agent, entry, get, pending, roomy, suspend, trail } from './contract/samples.ts'

t.test('a restart keeps everything', async t => {
  const directory = testdir(t)
  const first = await openSqliteStore({ directory })
  await first.agents.insert(agent('a1'), 'hash', entry('agent.register'))
  await first.policies.insert({ name: 'p', document: '{}', createdAt: 1, updatedAt: 1 }, entry('policy.create'))
  await suspend(first, 'h1')
  const all = async (store: typeof first) =>
    Promise.all([store.agents.all(), store.policies.all(), get(store, 'h1'), store.hitl.sealed('h1'), trail(store)])
  const before = await all(first)
  await first.close()
  const second = await openSqliteStore({ directory })
  t.teardown(() => second.close())
  t.strictSame(await all(second), before)
})

/** The storage threads that start while the test runs. */
function threadsOf(t: Test): Worker[] {
  const threads: Worker[] = []
  const remember = (worker: Worker) => threads.push(worker)
  process.on('worker', remember)
  t.teardown(() => process.off('worker', remember))
  return threads
}

t.test('a thread that dies fails the calls it had, and the next call finds a new one', async t => {
  const threads = threadsOf(t)
  const store = await openSqliteStore({ directory: testdir(t) })
  t.teardown(() => store.close())
  await suspend(store, 'h1')
  const waiting = Array.from({ length: 20 }, (_, n) => suspend(store, `lost-${n}`))
  void threads[0]?.terminate()
  const results = await Promise.allSettled(waiting)
  t.ok(results.every(result => result.status === 'fulfilled' || result.reason.name === 'StoreError'))
  t.ok(results.some(result => result.status === 'rejected'))
  await Promise.all(Array.from({ length: 5 }, () => store.audit.append(entry('after'))))
  t.equal(threads.length, 2, 'all who call meanwhile share the one new thread')
  t.match(await get(store, 'h1'), { status: 'Pending' })
})

t.test('a store whose file cannot be opened again fails, until it can', async t => {
  const directory = testdir(t)
  const threads = threadsOf(t)
  const store = await openSqliteStore({ directory })
  t.teardown(() => store.close())
  await threads[0]?.terminate()
  const other = new DatabaseSync(join(directory, 'gateway.lock'))
  other.exec('begin exclusive')
  // On a busy machine a new thread may need longer than a call waits.
  await t.rejects(store.agents.all(), { name: 'StoreError', message: /in use|does not start/ })
  other.close()
  t.strictSame(await eventually(() => store.agents.all().catch(() => undefined), Array.isArray), [])
})

t.test('calls made before closing are answered, and those after are refused', async t => {
  const store = await openSqliteStore({ directory: testdir(t) })
  const before = [suspend(store, 'h1'), store.hitl.get('h1', 1_500)]
  const closed = store.close()
  await t.rejects(suspend(store, 'h2'), { name: 'StoreError' })
  await closed
  t.match(await Promise.all(before), ['stored', { id: 'h1' }])
  await t.rejects(store.agents.all(), { name: 'StoreError', message: /closed/ })
  await t.rejects(store.ping(), { name: 'StoreError' })
  await store.close()
})

t.test('bytes that are a part of a larger buffer are stored as that part, and stay usable', async t => {
  const store = await openSqliteStore({ directory: testdir(t) })
  t.teardown(() => store.close())
  const part = Buffer.from('..sealed..').subarray(2, 8)
  await store.hitl.insert(pending('h1'), part, roomy, entry('s'))
  t.equal(Buffer.from((await store.hitl.sealed('h1'))!).toString(), 'sealed')
  t.equal(part.toString(), 'sealed')
})

t.test('what cannot be sent to the thread is refused, and the store goes on', async t => {
  const store = await openSqliteStore({ directory: testdir(t) })
  t.teardown(() => store.close())
  await t.rejects(store.audit.append(entry('a', { details: { call: () => 1 } })), { name: 'DataCloneError' })
  await t.rejects(store.audit.append(entry('a', { details: { big: 1n } })), { name: 'StoreError' })
  await store.audit.append(entry('a'))
  t.match(await store.audit.after(0, 2), [{ seq: 1 }])
})

t.test('the probe writes once for all who ask, and not again within a second', async t => {
  let now = 0
  const clock = { now: () => now, steady: () => now }
  const store = await openSqliteStore({ directory: testdir(t), clock })
  await Promise.all([store.ping(), store.ping()])
  await store.close()
  now = 999
  await store.ping()
  now = 1_000
  await t.rejects(store.ping(), { name: 'StoreError' })
})

t.test('a store that nothing waits for does not keep the process running', async t => {
  const idle = new URL('./child/idle.ts', import.meta.url).pathname
  const { stdout, status } = spawnSync(process.execPath, [idle, testdir(t)], { timeout: 120_000 })
  t.strictSame([stdout.toString(), status], ['0\n', 0])
})

t.test('the storage thread gives way to the thread that serves requests', async t => {
  const store = await openSqliteStore({ directory: testdir(t) })
  t.teardown(() => store.close())
  const nicenessOf = (task: string) => {
    const [, name, fields = ''] = /\((.*)\) (.*)/.exec(readFileSync(`/proc/self/task/${task}/stat`, 'utf8')) ?? []
    return { name, niceness: Number(fields.split(' ')[16]) }
  }
  const threads = readdirSync('/proc/self/task').map(nicenessOf)
  const storage = threads.filter(({ name }) => name === 'storage')
  t.ok(storage.length > 0)
  for (const { niceness } of storage) t.ok(niceness > nicenessOf(String(process.pid)).niceness)
  t.equal((await store.agents.all()).length, 0, 'and answers all the same')
})
