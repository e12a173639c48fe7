import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Kysely, sql } from 'kysely'
import t from 'tap'
import { connect, migrateWhole, migrations } from '../../src/storage/sqlite/database.ts'
import { openSqliteStore } from '../fixtures/sqlite.ts'
import { testdir } from '../fixtures/testdir.ts'
import { agent, entry } from './contract/samples.ts'

t.test('a migration that is killed in the middle leaves the schema and the data as they were', async t => {
  const directory = testdir(t)
  const file = join(directory, 'gateway.db')
  const before = await openSqliteStore({ directory })
  await before.agents.insert(agent('a1'), 'hash', entry('agent.register'))
  await before.close()

  const migrator = new URL('./child/migrator.ts', import.meta.url).pathname
  const { signal } = spawnSync(process.execPath, [migrator, file])
  t.equal(signal, 'SIGKILL')

  const after = await openSqliteStore({ directory })
  t.strictSame(await after.agents.all(), [agent('a1')])
  await after.close()
  const schema = new DatabaseSync(file)
  const columns = schema.prepare("select name from pragma_table_info('agents')").all()
  t.notOk(columns.some(column => column['name'] === 'half'))
  schema.close()
})

t.test('a later step changes an existing database once, and keeps its data', async t => {
  const file = join(testdir(t), 'gateway.db')
  const opened = connect(file)
  t.teardown(() => opened.connection.close())
  await migrateWhole(opened, migrations)
  opened.connection.exec("insert into policies values ('p', '{}', 1, 2)")

  let runs = 0
  const later = {
    ...migrations,
    '0009-note': {
      async up(db: Kysely<unknown>) {
        runs += 1
        await sql`alter table policies add column note text`.execute(db)
      },
    },
  }
  await migrateWhole(opened, later)
  await migrateWhole(opened, later)
  t.equal(runs, 1)
  t.match(opened.connection.prepare('select * from policies').all(), [{ name: 'p', updatedAt: 2, note: null }])
})
