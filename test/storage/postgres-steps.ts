/** Steps of the schema that other versions of the gateway bring. */
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { DatabaseConnections } from '../../src/storage/postgres/connection.ts'
import { prepareDatabase } from '../../src/storage/postgres/migrate.ts'
import { openPostgresStore } from '../../src/storage/postgres/open.ts'
import { type MigrationStep, type Steps, stepsOf } from '../../src/storage/postgres/steps.ts'
import { createSchema } from '../fixtures/postgres.ts'
import { actions, agent, deny, entry, suspend } from './contract/samples.ts'

type Settings = Awaited<ReturnType<typeof createSchema>>

const adds: MigrationStep = { up: async db => void (await sql`create table more (id text primary key)`.execute(db)) }
const takes: MigrationStep = { needs: '2.0.0', up: async db => void (await sql`drop table more`.execute(db)) }

/** The steps of this version, and those of one to come. */
const withSteps = ({ schema }: Settings, more: Steps['own']): Steps => {
  const { common, own } = stepsOf(schema)
  return { common, own: { ...own, ...more } }
}

async function prepare(t: Test, settings: Settings, version: string, more: Steps['own']) {
  const connections = new DatabaseConnections(settings)
  t.teardown(() => connections.close())
  return prepareDatabase({ connections, settings, version, steps: withSteps(settings, more) })
}

async function open(t: Test, settings: Settings, version: string) {
  const store = await openPostgresStore({ settings, version, name: `host-${version}` })
  t.teardown(() => store.close())
  return store
}

t.test('an older gateway runs on beside a step that adds, and starts again after it', async t => {
  const settings = await createSchema(t)
  const old = await open(t, settings, '1.0.0')
  t.strictSame(await prepare(t, settings, '1.1.0', { '0100-adds': adds }), ['0100-adds'])
  await settings.admin.query(`insert into changes select 1, 0, 'later', 'key', '{}', gen_random_uuid()`)
  await old.agents.insert(agent('a1'), 'h', entry('goes.on'))
  await old.close()
  const again = await open(t, settings, '1.0.0')
  t.strictSame(await actions(again), ['goes.on'])
})

t.test('a step that takes away waits until each gateway that runs can do without, and names the others', async t => {
  const settings = await createSchema(t)
  const old = await open(t, settings, '1.9.0')
  await prepare(t, settings, '2.0.0', { '0100-adds': adds })
  const all = { '0100-adds': adds, '0101-takes': takes }
  await t.rejects(prepare(t, settings, '2.1.0', all), {
    name: 'StartupError',
    message: /0101-takes .* needs version 2\.0\.0 .* Replace first: host-1\.9\.0 \(version 1\.9\.0\)/,
  })
  await old.close()
  const newer = await open(t, settings, '2.0.0')
  t.strictSame(await prepare(t, settings, '2.1.0', all), ['0101-takes'])
  await newer.audit.append(entry('goes.on'))
  await t.rejects(open(t, settings, '1.9.0'), { name: 'StartupError', message: /needs version 2\.0\.0/ })
})

t.test('three starts at once run each step once', async t => {
  const settings = await createSchema(t)
  await (await open(t, settings, '1.0.0')).close()
  const ran = await Promise.all([1, 2, 3].map(() => prepare(t, settings, '1.1.0', { '0100-adds': adds })))
  t.strictSame(ran.flat(), ['0100-adds'])
})

t.test('a step that fails changes nothing, nor does what it was to run with', async t => {
  const settings = await createSchema(t)
  await (await open(t, settings, '1.0.0')).close()
  const fails: MigrationStep = { up: async db => void (await sql`select 1 / 0`.execute(db)) }
  await t.rejects(prepare(t, settings, '1.1.0', { '0100-adds': adds, '0101-fails': fails }), { name: 'StartupError' })
  t.strictSame(await prepare(t, settings, '1.1.0', { '0100-adds': adds }), ['0100-adds'])
})

t.test('with Check a start is refused while steps are missing, and changes nothing', async t => {
  const settings = { ...(await createSchema(t)), migrate: 'Check' as const }
  await t.rejects(openPostgresStore({ settings }), { name: 'StartupError', message: /0001-schema.*storage migrate/ })
  const { rowCount } = await settings.admin.query('select from pg_namespace where nspname = $1', [settings.schema])
  t.equal(rowCount, 0)
  await (await open(t, { ...settings, migrate: 'Auto' } as Settings, '1.0.0')).close()
  await (await open(t, settings, '1.0.0')).close()
})

t.test('what a running gateway asks for goes on beside columns that a step adds to any table', async t => {
  const settings = { ...(await createSchema(t)), poolSize: 1 }
  const store = await open(t, settings, '1.0.0')
  const exercise = async (id: string) => {
    t.equal(await suspend(store, id), 'stored')
    t.match(await store.hitl.get(id, 1_500), { id })
    t.match(await deny(store, id), { denied: { id } })
    t.equal((await store.hitl.history({ page: 1, pageSize: 9 }, { agentId: 'a1' })).items.at(-1)?.status, 'Denied')
    t.equal(await store.policies.insert({ name: id, document: '{}', createdAt: 1, updatedAt: 1 }, entry('p')), 'stored')
    t.equal(await store.policies.update({ name: id, document: '[]', createdAt: 1, updatedAt: 2 }, entry('p')), 'stored')
    await store.policies.apply([{ name: id, policy: undefined, entry: entry('p') }])
    const grant = { id, agentId: 'a1', policyName: 'p', rule: '', method: 'POST', origin: 'o', path: '/', maxUses: 9 }
    const given = { ...grant, uses: 0, hitlId: id, credentials: '', grantedBy: 'r', createdAt: 1, expiresAt: 9_000 }
    await store.grants.insert(given, entry('g'))
    t.match(await store.grants.use(id, { now: 2 }, entry('g')), { id, uses: 1 })
    t.match(await store.grants.active(2, 'a1'), [{ id }])
    t.ok(await store.grants.remove(id, entry('g')))
    await store.agents.insert(agent(id), 'h', entry('a'))
    t.match(await store.agents.trust(id), { status: 'Active' })
    const limits = { maxServers: 9, maxBytes: 9_000 }
    await store.tools.keep({ agentId: id, server: 's', digests: {}, at: 1 }, limits)
    t.match(await store.tools.digests(id, 's'), {})
    t.ok((await store.audit.after(1, 100)).length > 3)
    t.ok((await store.audit.list({ page: 1, pageSize: 9 }, { action: 'g' })).totalCount > 1)
  }
  await exercise('h1')
  const { rows } = await settings.admin.query('select tablename as name from pg_tables where schemaname = $1', [
    settings.schema,
  ])
  for (const { name } of rows) await settings.admin.query(`alter table ${name} add column later text`)
  await exercise('h2')
})
