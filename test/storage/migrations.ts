import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
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
