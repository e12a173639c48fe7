import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { createMigrations } from '../../src/storage/migrations.ts'
import { connect, migrateWhole } from '../../src/storage/sqlite/database.ts'
import { openSqliteStore } from '../../src/storage/sqlite/open.ts'
import { agent, entry } from './contract/samples.ts'

t.test('a migration that is killed in the middle leaves the schema and the data as they were', async t => {
  const directory = t.testdir()
  const file = join(directory, 'gateway.db')
  const before = await openSqliteStore({ directory })
  await before.agents.insert(agent('a1'), 'hash', entry('agent.register'))
  await before.close()

  const migrator = new URL('./child/migrator.ts', import.meta.url).pathname
  const { signal } = spawnSync(process.execPath, [migrator, file], { env: { ...process.env, NODE_OPTIONS: '' } })
  t.equal(signal, 'SIGKILL')

  const after = await openSqliteStore({ directory })
  t.same(await after.agents.all(), [agent('a1')])
  await after.close()
  const schema = new DatabaseSync(file)
  const columns = schema.prepare("select name from pragma_table_info('agents')").all()
  t.notOk(columns.some(column => column['name'] === 'half'))
  schema.close()
})

t.test('a database of the first version is brought up to date with its data', async t => {
  const directory = t.testdir()
  const old = connect(join(directory, 'gateway.db'))
  const { '0001-start': start } = createMigrations({ bytes: 'blob' })
  await migrateWhole(old, { '0001-start': start! })
  old.connection.exec("insert into policies values ('p', '{}', 1, 2)")
  old.connection.close()

  const store = await openSqliteStore({ directory })
  t.teardown(() => store.close())
  t.same(await store.policies.all(), [{ name: 'p', document: '{}', createdAt: 1, updatedAt: 2 }])
  t.same(await store.grants.active(0), [])
})
