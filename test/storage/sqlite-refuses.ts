import { createHash } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { openSqliteTrail } from '../../src/storage/sqlite/trail.ts'
import { isCurrent, schemaDigest } from '../../src/storage/sqlite/version.ts'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'
import { agent, entry } from './contract/samples.ts'

/** The bytes of a gateway.db that holds 200 agents. */
const sound = await (async () => {
  const directory = testdir(t)
  const store = await openSqliteStore({ directory })
  const ids = Array.from({ length: 200 }, (_, n) => `agent-${n}`)
  await Promise.all(ids.map(id => store.agents.insert(agent(id), 'hash', entry('agent.register'))))
  await store.close()
  return readFileSync(join(directory, 'gateway.db'))
})()

async function refused(t: Test, directory: string, message: RegExp): Promise<void> {
  const file = join(directory, 'gateway.db')
  const before = createHash('sha256').update(readFileSync(file)).digest('hex')
  const error: Error = await openSqliteStore({ directory }).then(
    () => t.fail('it opened'),
    error => error,
  )
  t.equal(error.name, 'StartupError')
  t.match(error.message, message)
  t.match(error.message, file)
  t.notMatch(error.message, /\n/, 'one line')
  t.equal(createHash('sha256').update(readFileSync(file)).digest('hex'), before, 'the file is untouched')
}

t.test('a file that is no database is refused', async t => {
  const directory = testdir(t, { 'gateway.db': 'not a database, but long enough to be taken for one'.repeat(50) })
  await refused(t, directory, /not a database/)
})

t.test('an empty file is refused', async t => {
  await refused(t, testdir(t, { 'gateway.db': '' }), /empty/)
})

t.test('a log whose database is missing is not taken into a new one', async t => {
  const directory = testdir(t, { 'gateway.db-wal': 'frames' })
  await t.rejects(openSqliteStore({ directory }), { name: 'StartupError', message: /gateway.db is missing/ })
  t.strictSame(readdirSync(directory).sort(), ['gateway.db-wal', 'gateway.lock'])
})

t.test('a database of something else is refused', async t => {
  const directory = testdir(t)
  const other = new DatabaseSync(join(directory, 'gateway.db'))
  other.exec('create table bookmarks (url text)')
  other.close()
  await refused(t, directory, /not a valid gateway database/)
})

t.test('a file cut in half is refused', async t => {
  const directory = testdir(t, { 'gateway.db': sound.subarray(0, sound.length / 2) })
  await refused(t, directory, /not a valid gateway database/)
})

t.test('a file with a page of agents overwritten is refused', async t => {
  const bytes = Buffer.from(sound)
  const page = Math.floor(bytes.indexOf('agent-100') / 4_096)
  bytes.fill(0xa5, page * 4_096, (page + 1) * 4_096)
  await refused(t, testdir(t, { 'gateway.db': bytes }), /not a valid gateway database/)
})

t.test('a database of this version is known by the digest of its schema', async t => {
  const made = new DatabaseSync(join(testdir(t, { 'gateway.db': sound }), 'gateway.db'))
  t.teardown(() => made.close())
  t.ok(isCurrent(made), `currentSchema of src/storage/sqlite/version.ts must be ${schemaDigest(made)}`)
  made.exec('drop trigger hitl_gone')
  t.notOk(isCurrent(made))
})

t.test('a database with a schema step of another version is refused', async t => {
  const directory = testdir(t, { 'gateway.db': sound })
  const newer = new DatabaseSync(join(directory, 'gateway.db'))
  newer.exec("insert into kysely_migration values ('9999-future', '2030-01-01')")
  newer.close()
  await refused(t, directory, /written by another version .*\(store_version: schema step 9999-future is unknown here\)/)
})

t.test('a database whose tables another version has made by the same steps is refused, with what to do', async t => {
  const next = /Run that version, or restore a backup of this one\. To begin without .*, move the folder away\./
  for (const [change, what] of [
    ['alter table agent_shapes drop column fields', /store_version: agent_shapes\.fields is missing there/],
    ['drop table rule_hits', /store_version: rule_hits\.count is missing there/],
    ['alter table policies add column note text', /store_version: policies\.note is unknown here/],
  ] as const) {
    const directory = testdir(t, { 'gateway.db': sound })
    const other = new DatabaseSync(join(directory, 'gateway.db'))
    other.exec(change)
    other.close()
    await refused(t, directory, what)
    await refused(t, directory, next)
  }
})

t.test('a folder that cannot be made is refused', async t => {
  const directory = join(testdir(t, { file: '' }), 'file', 'data')
  await t.rejects(openSqliteStore({ directory }), { name: 'StartupError', message: /cannot be written.*DataDirectory/ })
})

t.test('a second gateway on the same folder is refused while the first runs', async t => {
  const directory = testdir(t)
  const first = await openSqliteStore({ directory })
  await t.rejects(openSqliteStore({ directory }), { name: 'StartupError', message: /in use by another gateway/ })
  await first.audit.append(entry('still works'))
  const trail = openSqliteTrail(directory)
  t.match(await trail.after(0, 10), [{ action: 'still works' }], 'but the trail can be read')
  t.match(await trail.list({ page: 1, pageSize: 1 }), { totalCount: 1 })
  trail.close()
  await first.close()
  await (await openSqliteStore({ directory })).close()
})

t.test('there is no trail to read where there is no store', async t => {
  t.throws(() => openSqliteTrail(testdir(t)), { name: 'StartupError', message: /no audit trail/ })
})

t.test('the folder and the files are for their owner alone, and a folder that was there keeps its mode', async t => {
  const made = join(testdir(t), 'a', 'data')
  const store = await openSqliteStore({ directory: made })
  t.teardown(() => store.close())
  const mode = (path: string) => statSync(path).mode & 0o777
  t.equal(mode(made), 0o700)
  await store.audit.append(entry('a'))
  for (const name of ['gateway.db', 'gateway.db-wal', 'gateway.db-shm', 'gateway.lock'])
    t.equal(mode(join(made, name)), 0o600, name)

  const there = testdir(t, { data: {} })
  chmodSync(join(there, 'data'), 0o750)
  await (await openSqliteStore({ directory: join(there, 'data') })).close()
  t.equal(mode(join(there, 'data')), 0o750)
})
