import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { createMigrations } from '../../src/storage/migrations.ts'
import { connect, migrateWhole } from '../../src/storage/sqlite/database.ts'
import { openSqliteStore } from '../../src/storage/sqlite/open.ts'
import { agent, entry, pending, sealed } from './contract/samples.ts'

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

t.test('what waited for review in an older database waits in the new one, and takes its room', async t => {
  const directory = t.testdir()
  const old = connect(join(directory, 'gateway.db'))
  const steps = Object.entries(createMigrations({ bytes: 'blob' })).filter(([name]) => name < '0004')
  await migrateWhole(old, Object.fromEntries(steps))
  const insert = old.connection.prepare(`insert into hitl (id, agent_id, owner_id, method, host, reason,
    approvals_needed, digest, created_at, expires_at, status, attempt, approved_by, body_bytes, body_encoding, url,
    decision, headers, body) values (?, 'a1', 'owner', 'POST', 'a.example', 'rule', 1, 'digest', 1000, 2000, ?, 0, '[]',
    7, 'utf8', 'https://a.example/', '{}', '{"accept":"*/*"}', 'Grüße')`)
  insert.run('h1', 'Pending')
  insert.run('h2', 'Denied')
  for (const id of ['h1', 'h2']) old.connection.prepare('insert into hitl_sealed values (?, ?, null)').run(id, sealed)
  old.connection.close()

  const store = await openSqliteStore({ directory })
  t.teardown(() => store.close())
  t.match(await store.hitl.get('h1', 1_500), { headers: { accept: '*/*' }, body: 'Grüße', status: 'Pending' })
  t.match(await store.hitl.get('h2', 1_500), { headers: { accept: '*/*' }, body: 'Grüße', status: 'Denied' })
  t.same(await store.hitl.sealed('h1'), sealed)
  t.match(await store.hitl.pending(1_500), [{ id: 'h1', summary: null }])
  const limits = { maxPending: 2, maxPendingOfAgent: 1, joinsSince: 0 }
  t.equal(await store.hitl.insert(pending('h3'), sealed, limits, entry('s')), 'agentQueueFull')
  t.equal(await store.hitl.insert(pending('h3', { agentId: 'a2' }), sealed, limits, entry('s')), 'stored')
  t.equal(await store.hitl.insert(pending('h4', { agentId: 'a3' }), sealed, limits, entry('s')), 'queueFull')
})
