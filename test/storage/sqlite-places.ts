/** Threat T45 of SECURITY.md: files that are moved, replaced or cut are noticed; nothing is acknowledged and lost. */
import { copyFileSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'
import { entry, get, suspend } from './contract/samples.ts'

/** A store with one request in it. */
async function opened(t: Test) {
  const directory = testdir(t)
  const fault = Promise.withResolvers<string>()
  const store = await openSqliteStore({ directory, onFault: fault.resolve })
  t.teardown(() => store.close())
  await suspend(store, 'h1')
  return { directory, store, fault: fault.promise, file: join(directory, 'gateway.db') }
}

const harms: readonly (readonly [title: string, harm: (file: string) => void, message: RegExp])[] = [
  ['gateway.db is moved away', file => renameSync(file, `${file}.old`), /gateway\.db was moved or deleted/],
  ['gateway.db is deleted', file => rmSync(file), /gateway\.db was moved or deleted/],
  ['the log is deleted', file => rmSync(`${file}-wal`), /gateway\.db-wal was moved or deleted/],
  ['the index of the log is deleted', file => rmSync(`${file}-shm`), /gateway\.db-shm was moved or deleted/],
  [
    'gateway.db is replaced',
    file => {
      copyFileSync(file, `${file}.copy`)
      renameSync(`${file}.copy`, file)
    },
    /gateway\.db was replaced/,
  ],
  [
    'gateway.db is overwritten in place with another database',
    file => {
      const other = `${file}.other`
      const connection = new DatabaseSync(other)
      connection.exec('create table filler (bytes blob)')
      connection.exec('insert into filler values (randomblob(2000000))')
      connection.close()
      writeFileSync(file, readFileSync(other))
    },
    /gateway\.db was overwritten/,
  ],
  [
    'gateway.db is overwritten in place with an copy of itself',
    file => writeFileSync(file, readFileSync(file)),
    /gateway\.db was overwritten/,
  ],
  ['gateway.db is cut', file => truncateSync(file, 4_096), /gateway\.db was cut short/],
]

for (const [title, harm, message] of harms) {
  t.test(`${title} at run time: writes are refused, and reading goes on`, async t => {
    const { file, store } = await opened(t)
    harm(file)
    await t.rejects(suspend(store, 'h2'), { name: 'StoreError', message })
    await t.rejects(store.ping(), { name: 'StoreError', message })
    if (!/cut|another database/.test(title)) t.match(await get(store, 'h1'), { status: 'Pending' })
  })
}

t.test('the log is copied into gateway.db while the store runs, which is no change by somebody else', async t => {
  const { file, store } = await opened(t)
  const before = statSync(file).mtimeMs
  for (let i = 0; i < 70; i++) await store.audit.append(entry(`entry ${i}`))
  t.ok(statSync(file).mtimeMs > before, 'it was copied')
  await store.ping()
  t.ok(statSync(`${file}-wal`).size < 4_000_000)
})

t.test('it is noticed while nothing is written', async t => {
  const { file, fault } = await opened(t)
  // An idle store does not keep the process running.
  const running = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(running))
  renameSync(file, `${file}.old`)
  t.match(await fault, /was moved or deleted; restart the gateway/)
})

t.test('without gateway.lock a second gateway is kept out all the same', async t => {
  const { directory, store } = await opened(t)
  const second = () => openSqliteStore({ directory })
  rmSync(join(directory, 'gateway.lock'))
  await t.rejects(second(), { name: 'StartupError', message: /gateway\.db is in use by another gateway/ })
  await t.rejects(second(), { name: 'StartupError' }, 'nor when the one before has left a lock of its own')
  await store.audit.append(entry('still works'))
})

t.test('a file that is 100 bytes short is refused', async t => {
  const { file, store, directory } = await opened(t)
  // The last page is one of the trail, which is not read at the start.
  await Promise.all(Array.from({ length: 300 }, () => store.audit.append(entry('agent.policy'))))
  await store.close()
  truncateSync(file, readFileSync(file).length - 100)
  const before = readFileSync(file)
  await t.rejects(openSqliteStore({ directory }), { name: 'StartupError', message: /its last page is cut/ })
  t.strictSame(readFileSync(file), before)
})

t.test(
  'a database that another program has locked is given up on in time, and what was given up is not done',
  async t => {
    const { file, store } = await opened(t)
    const other = new DatabaseSync(file)
    other.exec('begin immediate')
    const start = performance.now()
    await t.rejects(Promise.all([suspend(store, 'h2'), suspend(store, 'h3')]), {
      name: 'StoreError',
      message: /locked/,
    })
    await t.rejects(store.ping(), { name: 'StoreError', message: /locked/ })
    t.ok(performance.now() - start < 30_000)
    other.exec('rollback')
    other.close()
    await store.ping()
    t.strictSame(await Promise.all(['h2', 'h3'].map(id => store.hitl.brief(id, 1_500))), [undefined, undefined])
  },
)
