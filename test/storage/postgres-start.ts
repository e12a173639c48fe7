import { spawnSync } from 'node:child_process'
import { Migrator } from 'kysely/migration'
import t, { type Test } from 'tap'
import { createMigrations } from '../../src/storage/migrations.ts'
import { DatabaseConnections } from '../../src/storage/postgres/connection.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import type { PostgresSettings } from '../../src/storage/postgres/settings.ts'
import { eventually } from '../fixtures/gateway.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { startTcpProxy } from '../fixtures/tcp-proxy.ts'
import { actions, agent, entry, get, suspend, trail } from './contract/samples.ts'

t.test('three stores that start at once on an empty database make one schema', async t => {
  const settings = await createSchema(t)
  const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore({ settings })))
  t.teardown(() => Promise.all(stores.map(store => store.close())))
  await Promise.all(stores.map((store, n) => store.audit.append(entry(`a${n}`))))
  t.strictSame((await actions(stores[0]!)).sort(), ['a0', 'a1', 'a2'])
  const { rows } = await settings.admin.query('select count(*)::int as steps from kysely_migration')
  t.strictSame(rows, [{ steps: Object.keys(createMigrations({ bytes: 'bytea', count: 'bigint' })).length }])
})

/** What a start sends, at which its connection fails. */
const places = {
  'begins to watch': 'listen "agent_gateway',
  'looks at the schema': 'pg_advisory_xact_lock',
  'enters itself': 'insert into members',
  'reads what there is': 'repeatable read',
}
for (const [place, words] of Object.entries(places)) {
  t.test(`a start whose connection breaks twice as it ${place} goes on`, async t => {
    const { line, settings } = await startBehind(t)
    let left = 2
    line.onSend = data => {
      if (left > 0 && data.includes(words)) {
        left -= 1
        setImmediate(line.cut)
        return false
      }
      return true
    }
    await assertStarts(t, settings)
    t.equal(left, 0)
  })
}

t.test('a start that the server cuts off because it was too slow in a transaction goes on', async t => {
  const { line, settings } = await startBehind(t)
  const slow = [places['enters itself'], 'coalesce(max(seq), 0)']
  line.onSend = data => {
    const at = slow.findIndex(words => data.includes(words))
    if (at >= 0) slow.splice(at, 1)
    return at < 0
  }
  await assertStarts(t, settings)
  t.strictSame(slow, [])
})

async function startBehind(t: Test) {
  const { admin, ...settings } = await createSchema(t)
  const url = new URL(settings.connectionString)
  const line = await startTcpProxy(t, Number(url.port))
  url.port = String(line.port)
  return { line, settings: { ...settings, connectionString: url.href } }
}

async function assertStarts(t: Test, settings: PostgresSettings): Promise<void> {
  const store = await openPostgresStore({ settings })
  t.teardown(() => store.close())
  const follower = { load: () => undefined, change: () => undefined }
  await store.feed.agents.follow(follower)
  await store.feed.policies.follow(follower)
  await store.untilOpen()
  t.ok(store.fence.isOpen)
}

t.test('a restart keeps everything', async t => {
  const settings = await createSchema(t)
  const first = await openPostgresStore({ settings })
  await first.agents.insert(agent('a1'), 'hash', entry('agent.register'))
  await first.policies.insert({ name: 'p', document: '{}', createdAt: 1, updatedAt: 1 }, entry('policy.create'))
  await suspend(first, 'h1')
  const all = async (store: typeof first) =>
    Promise.all([store.agents.all(), store.policies.all(), get(store, 'h1'), store.hitl.sealed('h1'), trail(store)])
  const before = await all(first)
  await first.close()
  const second = await openPostgresStore({ settings })
  t.teardown(() => second.close())
  t.strictSame(await all(second), before)
})

t.test('a database at each earlier step is brought up to date, and keeps its rows', async t => {
  const steps = createMigrations({ bytes: 'bytea', count: 'bigint' })
  for (const step of Object.keys(steps)) {
    const settings = await createSchema(t)
    await settings.admin.query(`create schema ${settings.schema}`)
    const connections = new DatabaseConnections(settings)
    const client = await connections.acquire()
    const migrator = new Migrator({
      db: connections.over(client),
      provider: { getMigrations: async () => steps },
      migrationTableSchema: settings.schema,
      disableTransactions: true,
    })
    await migrator.migrateTo(step)
    client.release()
    await connections.close()
    await settings.admin.query(`insert into granted_keys values ('a1', 'k', 5)`)
    const columns = 'name, subject, version, state, rotates, sealed'
    await settings.admin.query(`insert into credentials (${columns}) values ('shop', '', 7, 'ready', 1, 'x')`)
    const store = await openPostgresStore({ settings })
    t.strictSame(await store.hitl.keyHolder('a1', 'k', 4), { hitlId: null }, step)
    const row = { name: 'shop', subject: '', version: 7, state: 'ready', rotates: 1 } as const
    t.match(await store.credentials.of(row), row, step)
    t.equal(await store.credentials.put({ ...row, version: 8, sealed: new Uint8Array() }, {}), true, step)
    await store.close()
  }
})

t.test('a start looks at no schema but its own: others come and go', async t => {
  const [settings, other] = [await createSchema(t), await createSchema(t)]
  await (await openPostgresStore({ settings: other })).close()
  await (await openPostgresStore({ settings })).close()
  const connections = new DatabaseConnections(settings)
  t.teardown(() => connections.close())
  const client = await connections.acquire()
  const { introspection } = connections.over(client)
  const [schemas, tables] = [await introspection.getSchemas(), await introspection.getTables()]
  client.release()
  t.strictSame(schemas, [{ name: settings.schema }])
  t.strictSame([...new Set(tables.map(({ schema }) => schema))], [settings.schema])
  t.ok(tables.some(({ name }) => name === 'hitl'))
})

t.test('texts are sorted by their bytes, whatever the database was made with', async t => {
  const settings = await createSchema(t)
  const store = await openPostgresStore({ settings })
  t.teardown(() => store.close())
  const { rows } = await settings.admin.query(
    `select distinct collation_name from information_schema.columns
    where table_schema = $1 and data_type = 'text' and table_name not like '%migration%'`,
    [settings.schema],
  )
  t.strictSame(rows, [{ collation_name: 'C' }])
})

t.test('a store goes on after the server has ended all of its connections', async t => {
  const settings = await createSchema(t)
  const errors: unknown[] = []
  const store = await openPostgresStore({ settings, onStale: error => errors.push(error) })
  t.teardown(() => store.close())
  const seen: string[] = []
  const follower = {
    load: () => undefined,
    change(key: string) {
      seen.push(key)
      return undefined
    },
  }
  await store.feed.agents.follow(follower)
  await settings.admin.query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [
    `agent-gateway/${settings.schema}`,
  ])
  const insert = () => store.agents.insert(agent('a1'), 'h', entry('agent.register')).catch(() => undefined)
  t.ok(await eventually(insert, Boolean))
  await eventually(
    async () => seen.length,
    count => count > 0,
  )
  t.strictSame(seen, ['a1'])
})

t.test('followers are loaded again when changes were removed that they have not seen', async t => {
  const settings = await createSchema(t)
  const [store, other] = [await openPostgresStore({ settings }), await openPostgresStore({ settings })]
  t.teardown(() => Promise.all([store.close(), other.close()]))
  const told: string[] = []
  await store.feed.agents.follow({
    load(all) {
      told.push(`load ${all.map(({ id }) => id)}`)
      return undefined
    },
    change(key) {
      told.push(key)
      return undefined
    },
  })
  // Between two turns: rows that nobody read, of which the last is left.
  await settings.admin.query(`begin; insert into changes
      select seq, 0, 'agents', 'x', null, gen_random_uuid() from unnest(array[1, 5]) as seq;
    insert into agents select 'a1', 'n', 'o', 'Active', null, '[]', null, '{}', 0.5, 0, null, 0, 'h', 0;
    delete from changes where seq = 1; commit`)
  await eventually(
    async () => told.length,
    count => count > 1,
  )
  t.strictSame(told, ['load ', 'load a1'])
  await other.agents.insert(agent('a2'), 'h', entry('agent.register'))
  await eventually(
    async () => told.length,
    count => count > 2,
  )
  t.strictSame(told.at(-1), 'a2')
})

t.test('a store that nothing waits for does not keep the process running', async t => {
  const { admin: _, ...settings } = await createSchema(t)
  const idle = new URL('./child/idle-postgres.ts', import.meta.url).pathname
  const { stdout, status, stderr } = spawnSync(process.execPath, [idle, JSON.stringify(settings)], { timeout: 120_000 })
  t.strictSame([stdout.toString(), status], ['0\n', 0], stderr.toString())
})

t.test('a schema has an epoch of its own, which stays', async t => {
  const settings = await createSchema(t)
  const epochs = async () => (await settings.admin.query<{ epoch: string }>('select epoch from fleet')).rows
  await (await openPostgresStore({ settings })).close()
  const first = await epochs()
  await (await openPostgresStore({ settings })).close()
  t.strictSame([await epochs(), first.length], [first, 1])
  const other = await createSchema(t)
  await (await openPostgresStore({ settings: other })).close()
  t.not((await other.admin.query('select epoch from fleet')).rows[0].epoch, first[0]?.epoch)
})
